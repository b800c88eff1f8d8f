"""Plans of audits: which labels to check first, and what is proven after each check."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from flipcert.audit.auditor import Auditor
from flipcert.labels.validation import check_flag
from flipcert.results.audit_plan import AuditPlan


def plan_audit(
    model: Any,
    X: ArrayLike,
    n_labels: int,
    *,
    flips: int,
    y: ArrayLike | None = None,
    threat: str = "flips",
    held_out: bool = False,
) -> AuditPlan:
    """Plan which training labels to check first, so that as many predictions as possible become proven.

    A label that was checked is trusted: an attacker cannot flip it any more. The plan is made for the predictions at
    hand, and assumes that the labels turn out right; where one is found wrong, correct it, fit again and plan again.

    Parameters
    ----------
    model : estimator or Pipeline
        Fitted; as in :func:`flipcert.certify`, and label-linear (:class:`flipcert.KernelRidge`,
        :class:`flipcert.KernelSVM`, :class:`flipcert.WeightedNeighbors`, :class:`flipcert.LabelSpreading`, a
        :class:`flipcert.LabelLinearClassifier`) or a :class:`flipcert.PartitionEnsemble` of such. Labels that it was
        told to trust stay trusted.
    X : array-like of shape (n_test, n_features)
        Test inputs: the predictions to prove.
    n_labels : int
        How many labels can be checked; with ``threat="sources"``, how many sources.
    flips : int
        How many labels (or sources) an attacker may change: predictions are to be proven against so many.
    y : array-like of shape (n_test,), optional
        True labels of the test inputs. Then only predictions that are right count.
    threat : {"flips", "sources"}, default="flips"
        Whether single labels are checked, or all labels of a source at once.
    held_out : bool, default=False
        Also tell what such a plan does for predictions that it was not made for (``plan.held_out``: made for one half
        of the points, measured on the other), and what as many random checks do (``plan.random``).

    Returns
    -------
    AuditPlan

    Notes
    -----
    To choose the best labels is hard: a prediction is proven only once *enough* of the labels that could change it are
    checked, so no greedy rule comes with a guarantee. Labels are chosen by a potential (see ``docs/audit.md``); what is
    proven after each check is then what :func:`flipcert.certify` says, exactly, however the labels were chosen. For
    ensembles labels are chosen by the smallest known attacks.

    A label can matter without being wrong (:func:`flipcert.suspicious_labels` looks for wrong ones), and a check of
    chosen labels proves nothing about the others.

    See Also
    --------
    measure_audit : What checks in a given order prove.
    suspicious_labels : Labels that look wrong.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import flipcert
    >>> X, y = load_digits(return_X_y=True)
    >>> model = flipcert.KernelRidge(reg=10.0).fit(X[::2] / 16, y[::2])
    >>> plan = flipcert.plan_audit(model, X[1::20] / 16, 40, flips=5, y=y[1::20])
    >>> plan.certified[[0, 20, 40]].round(2)
    array([0.79, 0.82, 0.84])
    """
    auditor = Auditor(model, X, flips, y, threat)
    count = auditor.checked_count(n_labels)
    shown = check_flag(held_out, "held_out")
    chosen = auditor.choose(count)
    curves = {"held_out": auditor.held_out(count), "random": auditor.random(count)} if shown else {}
    return auditor.plan(chosen, auditor.certified(chosen.units), **curves)


def measure_audit(
    model: Any,
    X: ArrayLike,
    order: ArrayLike,
    *,
    flips: int,
    y: ArrayLike | None = None,
    threat: str = "flips",
) -> AuditPlan:
    """Tell what checks in an order of one's own prove, for the same model or for other test points.

    Parameters
    ----------
    model, X, flips, y, threat
        As in :func:`flipcert.plan_audit`.
    order : array-like of int of shape (n_checks,)
        Training labels in the order in which they are checked, such as ``plan.indices`` of a plan for other points;
        with ``threat="sources"``, ids of sources.

    Returns
    -------
    AuditPlan
        With ``certified`` after each check.

    See Also
    --------
    plan_audit : Choose the order.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import flipcert
    >>> X, y = load_digits(return_X_y=True)
    >>> model = flipcert.KernelRidge(reg=10.0).fit(X[::2] / 16, y[::2])
    >>> plan = flipcert.plan_audit(model, X[1::20] / 16, 40, flips=5, y=y[1::20])
    >>> other = flipcert.measure_audit(model, X[11::20] / 16, plan.indices, flips=5, y=y[11::20])
    >>> bool(other.certified[40] >= other.certified[0])
    True
    """
    auditor = Auditor(model, X, flips, y, threat)
    units = auditor.given(order)
    return auditor.plan(auditor.as_given(units), auditor.certified(units))
