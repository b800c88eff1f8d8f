"""Functions that certify and attack a model, or a pipeline that ends in one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipcert.classifiers.description import behind
from flipcert.engine.sparse import indexable
from flipcert.labels.known_transformers import require_label_free
from flipcert.labels.own_methods import require_proven
from flipcert.labels.randomness import chances
from flipcert.labels.row_by_row import require_row_by_row
from flipcert.labels.steps import final_step, inputs_of_final_step, pipelines_of, transforms
from flipcert.labels.threats import DELETIONS, THREATS
from flipcert.results.certificates import Certificates
from flipcert.results.collective_certificate import CollectiveCertificate
from flipcert.results.witness import Witness


def certify(model: Any, X: ArrayLike, threat: str = "flips", **options: Any) -> Certificates:
    """Certify the predictions of a fitted model: how many label flips each withstands.

    Parameters
    ----------
    model : estimator or Pipeline
        An estimator of flipcert, or a scikit-learn pipeline that ends in one. Its transformers must never use a label,
        because flipped labels would change the features: scikit-learn's own that ignore y (scalers, PCA and the like),
        :class:`flipcert.LabelFree` around any other, or a ``FrozenEstimator``. Whatever is random needs a seed.
    X : array-like of shape (n_test, n_features)
        Test inputs.
    threat : str, default="flips"
        What an attacker does to the training set, as in the estimator's own method. Where rows come and go,
        transformers must treat each row by itself: a ``Normalizer``, or one that was fitted elsewhere and frozen. Rows
        to insert are known as features only, so behind a transformer there are no attacks that insert rows.
    **options
        Passed on to the estimator's ``certify``, such as ``exact=True``.

    Returns
    -------
    Certificates

    Notes
    -----
    Nothing else may be chosen from labels under attack, or the certificate is void: a hyper-parameter that was tuned on
    them, sample weights that were computed from them, a transformer that was fitted on them and then frozen. Choose on
    trusted labels, or fix things beforehand. Functions given to a transformer must be deterministic.

    A subclass of an estimator of flipcert with a ``fit`` or a ``predict`` of its own is refused, as nothing is proven
    about these, unless it has a ``certify`` of its own too.

    See Also
    --------
    worst_flips : The flips that change predictions.
    certify_collectively : One attack on all points.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import flipcert
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), flipcert.KernelRidge()).fit(X[::2], y[::2])
    >>> flipcert.certify(model, X[1::2]).radius[:5]
    array([ 5,  7, 10, 14,  7])
    """
    classifier, inputs = classifier_and_inputs(model, X, "certify", threat)
    certificates: Certificates = classifier.certify(inputs, **_named(threat), **options)
    if _inserts_features(model, threat):
        # Which inputs would become the features of an attack is not known.
        target = np.ma.masked_array(certificates.target, mask=True)
        unknown = np.full(len(certificates), certificates.limit)
        certificates = replace(certificates, radius_upper=unknown, target=target)
    return replace(certificates, model=behind(model, certificates.model))


def worst_flips(model: Any, X: ArrayLike, threat: str = "flips", **options: Any) -> list[Witness | None]:
    """Find the smallest known set of label flips that changes each prediction.

    Parameters
    ----------
    model : estimator or Pipeline
        As in :func:`flipcert.certify`.
    X : array-like of shape (n_test, n_features)
        Test inputs.
    threat : str, default="flips"
        What an attacker does to the training set, as in the estimator's own method. Where rows come and go,
        transformers must treat each row by itself: a ``Normalizer``, or one that was fitted elsewhere and frozen. Rows
        to insert are known as features only, so behind a transformer there are no attacks that insert rows.
    **options
        Passed on to the estimator's ``worst_flips``, such as ``exact=True``.

    Returns
    -------
    list of Witness or None
        ``witness.indices`` into the training set and ``witness.labels`` to put there: fitting the pipeline again on
        ``witness.apply(y)`` changes the prediction. None where no attack is known.

    See Also
    --------
    certify : How many flips each prediction withstands.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import flipcert
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), flipcert.KernelRidge()).fit(X[::2], y[::2])
    >>> (witness,) = flipcert.worst_flips(model, X[1:2])
    >>> flipped = model.fit(X[::2], witness.apply(y[::2])).predict(X[1:2])
    >>> f"{len(witness)} flips turn {y[1]} into {flipped[0]}"
    '6 flips turn 0 into 1'
    """
    classifier, inputs = classifier_and_inputs(model, X, "worst_flips", threat)
    witnesses: list[Witness | None] = classifier.worst_flips(inputs, **_named(threat), **options)
    return [None] * len(witnesses) if _inserts_features(model, threat) else witnesses


def certify_collectively(
    model: Any,
    X: ArrayLike,
    flips: ArrayLike,
    y: ArrayLike | None = None,
    threat: str = "flips",
    time_limit: float = 60.0,
) -> CollectiveCertificate:
    """Certify all predictions of a fitted model together: how many of them one attack can change.

    Parameters
    ----------
    model : estimator or Pipeline
        As in :func:`flipcert.certify`.
    X : array-like of shape (n_test, n_features)
        Test inputs.
    flips : int or array-like of int
        How many labels, or other units of the threat, an attacker may change in all.
    y : array-like of shape (n_test,), default=None
        True labels. Then only predictions that are right count; without them all do.
    threat : str, default="flips"
        As in :func:`flipcert.certify`.
    time_limit : float, default=60.0
        Seconds for all budgets, beyond certifying point by point. What is proven and found until then stands.

    Returns
    -------
    CollectiveCertificate

    See Also
    --------
    certify : Point by point.
    CollectiveCertificate : What comes back.

    References
    ----------
    Chen, Li, Li, Wu and Yan, *On Collective Robustness of Bagging Against Data Poisoning*, 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import flipcert
    >>> X, y = load_iris(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), flipcert.KernelRidge()).fit(X[::2], y[::2])
    >>> certificate = flipcert.certify_collectively(model, X[1::2], [0, 1], y[1::2])
    >>> bool(certificate.changed_at_most[1] <= certificate.changed_one_by_one[1])
    True
    """
    classifier, inputs = classifier_and_inputs(model, X, "certify_collectively", threat)
    if not hasattr(classifier, "certify_collectively"):
        raise TypeError(
            f"{type(classifier).__name__} has no collective certificate; use a flipcert estimator, "
            f"or PartitionEnsemble({type(classifier).__name__}(...))."
        )
    certificate: CollectiveCertificate = classifier.certify_collectively(
        inputs, flips, y, time_limit=time_limit, **_named(threat)
    )
    if _inserts_features(model, threat):
        # Which inputs would become the features of an attack is not known.
        certificate = certificate.without_attacks()
    return replace(certificate, model=behind(model, certificate.model))


def _named(threat: str) -> dict[str, str]:
    """The threat as an argument; classifiers of others need not know of it unless there is another than flips."""
    return {} if isinstance(threat, str) and threat == "flips" else {"threat": threat}


def _changes_rows(threat: str) -> bool:
    """Whether rows come and go; threats that there are not are refused by whoever is asked about them."""
    return isinstance(threat, str) and threat in THREATS and THREATS[threat].changes_rows


def _inserts_features(model: Any, threat: str) -> bool:
    """Whether an attack on the classifier at the end would insert features, not inputs."""
    return _changes_rows(threat) and threat != DELETIONS.name and transforms(model)


def classifier_and_inputs(model: Any, X: ArrayLike, question: str, threat: str) -> tuple[Any, Any]:
    """The classifier that answers, and the rows as it sees them, if labels and chance have no say in these.

    Nor may other rows, where these come and go.
    """
    for pipeline in pipelines_of(model):
        require_label_free(pipeline)
        if _changes_rows(threat):
            require_row_by_row(pipeline, threat)
        for name, step in pipeline.steps[:-1]:
            chance = next(chances(step, name), None)
            if chance is not None:
                raise ValueError(
                    f"{chance.parameter} of the pipeline is {chance.value}, so every fit would lead to other features "
                    f"and void the certificate; {chance.remedy}."
                )
    classifier = final_step(model)
    if hasattr(classifier, "best_estimator_"):
        raise ValueError(
            f"{type(classifier).__name__} chose hyper-parameters from labels, which voids a certificate if an attacker "
            "may flip them; if the search used trusted labels only, certify its best_estimator_."
        )
    if not hasattr(classifier, "certify"):
        if not hasattr(classifier, "predict"):
            raise TypeError(f"model must be a fitted classifier, or a Pipeline that ends in one; got {classifier!r}.")
        raise TypeError(
            f"{type(classifier).__name__} has no certificate; use a flipcert estimator, "
            f"or PartitionEnsemble({type(classifier).__name__}(...))."
        )
    require_proven(classifier, question)
    return classifier, indexable(inputs_of_final_step(model, X))
