"""Audits: which labels are worth a check, and what a check of some of them proves about all."""

from flipcert.audit.random_check import wrong_labels_at_most

__all__ = ["wrong_labels_at_most"]
