"""Which labels to check first, and which look wrong."""

from __future__ import annotations

from flipcert.audit.plan import measure_audit, plan_audit
from flipcert.audit.suspicion import suspicious_labels

__all__ = ["measure_audit", "plan_audit", "suspicious_labels"]
