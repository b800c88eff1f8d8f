"""Certificates against label flips, ours and others', on the same features and labels."""
