"""One function that certifies a model, or a pipeline that ends in one."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from flipcert.certificates import Certificates
from flipcert.label_free import require_label_free


def certify(model: Any, X: ArrayLike, **options: Any) -> Certificates:
    """Certify the predictions of a fitted model: how many label flips each withstands.

    Parameters
    ----------
    model : estimator or Pipeline
        An estimator of flipcert, or a scikit-learn pipeline that ends in one. Its transformers must not use labels
        (scalers, PCA and the like): one that does is refused, because flipped labels would change the features.
    X : array-like of shape (n_test, n_features)
        Test inputs.
    **options
        Passed on to the estimator's ``certify``, such as ``exact=True``.

    Returns
    -------
    Certificates

    Notes
    -----
    Hyper-parameters must not be tuned on labels under attack: a flipped label could change which model is chosen, and
    the certificate is about the one that was. Tune on trusted labels, or fix the parameters beforehand.

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
    while isinstance(model, Pipeline):
        require_label_free(model)
        X = model[:-1].transform(X) if len(model.steps) > 1 else X
        model = model.steps[-1][1]
    if hasattr(model, "best_estimator_"):
        raise ValueError(
            f"{type(model).__name__} chose hyper-parameters from labels, which voids a certificate if an attacker may "
            "flip them; if the search used trusted labels only, certify its best_estimator_."
        )
    if not hasattr(model, "certify"):
        raise TypeError(
            f"{type(model).__name__} has no certificate; use a flipcert estimator, "
            f"or PartitionEnsemble({type(model).__name__}(...))."
        )
    certificates: Certificates = model.certify(X, **options)
    return certificates
