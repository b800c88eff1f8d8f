"""One attack against all test points: what it can change at most, and what one that was found does change."""

from flipcert.collective.certify import certify_collectively

__all__ = ["certify_collectively"]
