"""Label spreading on a graph of neighbours."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from flipcert.classifiers.certified_by_weights import CertifiedByWeights
from flipcert.labels.annotations import Annotations
from flipcert.linear.spreading import SpreadWeights
from flipcert.linear.weights import Weights


class LabelSpreading(CertifiedByWeights):
    r"""Label spreading (Zhou et al., 2004): labels flow along a graph of nearest neighbours, and so reach new points.

    Rows are joined with their nearest neighbours in Euclidean distance, whichever of the two is near to the other. With
    A the graph and D its degrees, :math:`S = D^{-1/2} A D^{-1/2}`; the label of row i has the weight
    :math:`w_i(t) = s_t (I - \alpha S)^{-1} e_i` for a point t, where :math:`s_t` joins the point with *its* nearest
    neighbours. Best where classes are clusters: pixels, embeddings.

    The graph is made from the inputs alone, and instead of the inverse a polynomial is applied whose degree and
    coefficients are known before a label is seen. It is within one millionth of the inverse's norm, and it *is* the
    model: the certificate is exact for it. All rows that tie for the last place are neighbours, so neither labels nor
    the order of the rows ever break a tie. No weight is negative.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbours of each row, and of each new point; all others where there are no more.
    alpha : float, default=0.9
        How much a row takes from its neighbours, above 0 and below 1. The closer to 1, the farther labels reach: more
        flips are withstood, and small clusters are lost in large ones. Steps grow with
        :math:`1 / \sqrt{1 - \alpha}`.
    classes : array-like, optional
        The whole label space, a set. Give it where you know it: read from ``y`` by default, it is in the hands of an
        attacker, who can remove one of three or more classes by flipping all its labels: certificates end there.
    n_jobs : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    classes_ : ndarray
        The label space, sorted; ties go to the class that comes first.
    n_steps_ : int
        Degree of the polynomial: how many edges away from its neighbours a point sees labels.

    Notes
    -----
    A point that no label reaches, because only unlabelled rows are near, is given the first class, and no flip changes
    that.

    See Also
    --------
    WeightedNeighbors : The nearest neighbours alone.

    References
    ----------
    Zhou, Bousquet, Lal, Weston and Schölkopf, *Learning with Local and Global Consistency*, 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import flipcert
    >>> X, y = load_digits(return_X_y=True)
    >>> model = flipcert.LabelSpreading().fit(X[::2], y[::2])
    >>> model.certify(X[1::2]).radius[:6]
    array([10, 15, 10, 19, 14,  8])
    """

    _why_rows_must_stay = "the graph of neighbours changes when a row comes or goes"

    def __init__(
        self,
        n_neighbors: int = 10,
        alpha: float = 0.9,
        classes: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.classes = classes
        self.n_jobs = n_jobs

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | Annotations,
        trusted: ArrayLike | None = None,
        source: ArrayLike | None = None,
        unlabeled: ArrayLike | None = None,
    ) -> Self:
        """Fit the model: find the graph.

        Parameters
        ----------
        X, y, trusted, source
            As in all estimators of flipcert: training inputs and their labels, which of these an attacker cannot flip,
            and who gave them.
        unlabeled : array-like of shape (n_unlabeled, n_features), optional
            Further rows, without labels, for labels to flow through: the test points, if they are known, or any others.
            They are trusted as X is. In a pipeline they must have gone through its transformers already.

        Returns
        -------
        self

        Examples
        --------
        >>> import flipcert
        >>> X, y, X_test = [[0.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1], [[0.5], [4.5]]
        >>> model = flipcert.LabelSpreading(2, classes=[0, 1]).fit(X, y, unlabeled=X_test)
        >>> model.predict(X_test)
        array([0, 1])
        """
        self._unlabeled = unlabeled
        try:
            return super().fit(X, y, trusted, source)
        finally:
            del self._unlabeled

    def _check_parameters(self) -> None:
        whole = isinstance(self.n_neighbors, (int, np.integer)) and not isinstance(self.n_neighbors, bool)
        if not whole or self.n_neighbors < 1:
            raise ValueError(f"n_neighbors must be a positive whole number; got {self.n_neighbors!r}.")
        number = isinstance(self.alpha, (int, float, np.integer, np.floating)) and not isinstance(self.alpha, bool)
        if not number or not 0 < self.alpha < 1:
            raise ValueError(f"alpha must be a number above 0 and below 1; got {self.alpha!r}.")

    def _make_weights(self, X: NDArray[Any]) -> Weights:
        further = self._further_rows(X)
        rows = X if further is None else np.concatenate([X, further])
        weights = SpreadWeights(rows, X.shape[0], int(self.n_neighbors), float(self.alpha), self.n_jobs)
        self.n_steps_ = weights.n_steps
        return weights

    def _further_rows(self, X: NDArray[Any]) -> NDArray[Any] | None:
        """Rows without labels, as those of X."""
        if self._unlabeled is None:
            return None
        rows = check_array(
            self._unlabeled, dtype=X.dtype, input_name="unlabeled", ensure_2d=False, allow_nd=True, ensure_min_samples=0
        )
        if rows.ndim != 2 or rows.shape[1] != X.shape[1]:
            raise ValueError(
                f"unlabeled must hold rows of the {X.shape[1]} features that X has; got shape {rows.shape}."
            )
        # Columns of a frame are known by their names.
        validate_data(self, self._unlabeled, reset=False, skip_check_array=True)
        return np.asarray(rows)
