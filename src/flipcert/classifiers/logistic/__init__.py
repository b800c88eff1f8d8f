"""Multinomial logistic regression, certified by a bound on how far its minimiser moves."""
