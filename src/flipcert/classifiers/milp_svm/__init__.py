"""Kernel SVMs with any C."""
