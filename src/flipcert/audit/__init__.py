"""Audits: which labels are worth a check, and what a check of some of them proves about all."""

from flipcert.audit.plan import measure_audit, plan_audit
from flipcert.audit.random_check import wrong_labels_at_most
from flipcert.audit.suspicion import suspicious_labels

__all__ = ["measure_audit", "plan_audit", "suspicious_labels", "wrong_labels_at_most"]
