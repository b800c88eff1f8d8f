"""Compiled code."""
