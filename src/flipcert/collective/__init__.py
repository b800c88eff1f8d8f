"""One attack against all test points: what it can change at most, and what one that was found does change."""

from flipcert.collective.certify import Targets, certify_collectively

__all__ = ["Targets", "certify_collectively"]
