"""Tests of the paper's evaluation."""
