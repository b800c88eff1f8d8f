"""Errors that are about certificates rather than arguments."""

from __future__ import annotations


class CertificateError(RuntimeError):
    """A certificate could not be proven, or an invariant that proves one was broken.

    See Also
    --------
    UnsolvedError : Time ran out.

    Examples
    --------
    >>> import flipcert
    >>> issubclass(flipcert.CertificateError, RuntimeError)
    True
    """


class UnsolvedError(CertificateError):
    """The time limit ran out before an exact flip cost was proven.

    See Also
    --------
    CertificateError : The error that it is one of.

    Examples
    --------
    >>> import flipcert
    >>> issubclass(flipcert.UnsolvedError, flipcert.CertificateError)
    True
    """
