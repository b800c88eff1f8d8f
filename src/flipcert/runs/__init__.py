"""Runs: what was certified, on which data and how, kept in a folder while it goes on and afterwards."""
