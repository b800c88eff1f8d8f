"""Errors that are about certificates rather than arguments."""

from __future__ import annotations


class CertificateError(RuntimeError):
    """A certificate could not be proven, or an invariant that proves one was broken."""


class UnsolvedError(CertificateError):
    """The time limit ran out before an exact flip cost was proven."""
