"""Randomized smoothing over labels."""
