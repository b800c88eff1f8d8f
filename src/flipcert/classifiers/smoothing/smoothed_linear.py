"""Ridge regression smoothed by noise on the training labels."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from flipcert.classifiers.ridge import KernelRidge
from flipcert.classifiers.smoothing.label_noise import LabelNoise
from flipcert.engine.watch import current_watcher
from flipcert.flips._jit.reach import LOWER
from flipcert.flips.costs import cost_block
from flipcert.flips.source_costs import costs_in_sources
from flipcert.labels.labels import Labels
from flipcert.labels.threats import FLIPS, SOURCES, Threat
from flipcert.labels.validation import check_choice, check_number
from flipcert.linear.model import Block, LabelLinearModel
from flipcert.linear.weights import Weights
from flipcert.results.certificates import Certificates
from flipcert.results.flip_costs import FlipCosts

_METHODS = ("white-box", "neyman-pearson", "kl", "published")
_LEAST_NOISE = 1e-100


class SmoothedLinear(KernelRidge):
    r"""Linear ridge regression on one-hot labels, certified by randomized smoothing over the labels.

    Noise keeps each training label with probability :math:`1-q` and otherwise replaces it by another class, all
    equally probable. Weights do not see labels, so a Chernoff bound :math:`p_{ac}` on the probability that the
    predicted class a is not ahead of class c needs neither sampling nor retraining. Where :math:`p_{ac} \ge 1/2` the
    smoothed rule abstains, and the radius is 0.

    :meth:`predict` is the published rule, the class whose largest :math:`p_{ac}` is smallest. That is always the class
    with the highest ridge score, so it never abstains, and :class:`flipcert.KernelRidge` with ``kernel="linear"``
    certifies the same predictions exactly, with radii at least as large. No radius given here exceeds those
    (``method="published"`` excepted); the attacks that ``radius_upper`` and :meth:`worst_flips` speak of are on the
    ridge regression.

    Parameters
    ----------
    flip_probability : float, default=0.01
        Probability q of the noise to replace a label, above 0 and below :math:`(K-1)/K` for K classes.
    reg : float, default=1.0
        Regularisation of the ridge regression, positive. There is no bias: append a constant feature for one.
    method : {"white-box", "neyman-pearson", "kl", "published"}, default="white-box"
        How :math:`p_{ac}` becomes a number of flips.

        "white-box" bounds the Chernoff exponent after the worst flips of these very labels: after any that are
        certified, the bound itself is still below one half, and the deployed prediction stays.

        "neyman-pearson" and "kl" use only :math:`p_{ac} < 1/2`: after the certified flips, the noisy margin is
        positive with probability above one half. "neyman-pearson" is the largest radius that this proves, "kl" a bound
        on it from the divergence between noisy labels, for any number of classes; it is about half as large.

        "published" is the formula of the EnsembleCert paper, to reproduce its figures only. It takes the divergence of
        two classes, and is not proven for more: with K classes it over-states the radius of "kl" by the factor
        :math:`D_K / D_2` (for K = 10: 1.24 at q = 0.0001, 1.52 at 0.0125, 2.2 at 0.1, 6 at 0.3), and certifies
        predictions that flips within the radius change, from about q = 0.06 on for K = 10 and q = 0.2 for K = 3.
        :meth:`certify` warns, and such a radius may exceed ``radius_upper``. For two classes it is the same as "kl".
    classes : array-like, optional
        The whole label space, a set. Give it where you know it: read from ``y`` by default, it is in the hands of an
        attacker, who can remove one of three or more classes by flipping all its labels: certificates end there.
    n_jobs : int, optional
        Threads; all cores by default.

    Attributes
    ----------
    classes_ : ndarray
        The label space, sorted; ties go to the class that comes first.

    Notes
    -----
    Labels marked as trusted in :meth:`fit` get noise like all others, so that the prediction stays that of the ridge
    regression, but no flips.

    See Also
    --------
    KernelRidge : Certifies the same predictions exactly.

    References
    ----------
    Rosenfeld, Winston, Ravikumar and Kolter, *Certified Robustness to Label-Flipping Attacks via Randomized
    Smoothing*, 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import flipcert
    >>> X, y = load_iris(return_X_y=True)
    >>> for method in ("white-box", "neyman-pearson", "kl"):
    ...     model = flipcert.SmoothedLinear(method=method).fit(X[::2], y[::2])
    ...     print(model.certify(X[1::2]).radius[:5])
    [5 7 9 8 6]
    [4 6 7 6 4]
    [2 3 3 3 2]
    """

    kernel = "linear"

    _why_rows_must_stay = "its noise is that of labels, and the rows stay what they are"

    def __init__(
        self,
        flip_probability: float = 0.01,
        reg: float = 1.0,
        method: str = "white-box",
        classes: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.flip_probability = flip_probability
        self.reg = reg
        self.method = method
        self.classes = classes
        self.n_jobs = n_jobs

    def _check_label_space(self, n_classes: int, is_fixed: bool) -> None:
        check_choice(self.method, "method", _METHODS)
        q = check_number(self.flip_probability, "flip_probability")
        if q < _LEAST_NOISE:
            raise ValueError(
                f"flip_probability must be at least {_LEAST_NOISE:g}, or products of it underflow; got {q:g}."
            )
        # Flips may leave two classes of a label space that was not given, and that must not be refused.
        fewest = n_classes if is_fixed else 2
        limit = 0.5 if self.method == "published" else (fewest - 1) / fewest
        if q >= limit:
            space = f"{n_classes} classes" if is_fixed else "a label space that is read from y"
            raise ValueError(
                f'flip_probability must be below {limit:.6g} for {space} and method="{self.method}", or '
                f"the noise would leave no trace of the labels; got {q:g}."
            )

    def __sklearn_tags__(self) -> Tags:
        """Tell who asks that X may not be sparse: what noise does takes all weights at once."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _make_weights(self, X: NDArray[Any]) -> Weights:
        weights = super()._make_weights(X)
        # What noise does to a score takes all weights at once.
        weights.comes_in_tiles = False
        # What was fitted is certified, whatever becomes of the parameter.
        self._method = self.method
        self._noise = LabelNoise(self.flip_probability, self.classes_.size)
        return weights

    def _label_linear(self, X: ArrayLike) -> tuple[LabelLinearModel, NDArray[Any]]:
        """The ridge regression, whose predictions are deployed."""
        check_is_fitted(self)
        if self._method == "published":
            raise ValueError(
                'method="published" over-states radii, so that nothing is proven about all points together; use '
                '"white-box", "neyman-pearson" or "kl".'
            )
        return self._asked(X)

    def _flip_costs(self, X: ArrayLike, threat: Threat, bound: str, time_limit: float) -> NDArray[np.int64]:
        """What smoothing certifies against each class; attacks and exact costs are those of the ridge regression."""
        if bound != "lower":
            return super()._flip_costs(X, threat, bound, time_limit)
        self._warn_if_published()
        model, rows = self._asked(X)
        return self._against(threat, model.costs(rows, LOWER, refine=self._smoothed)).lower

    def _certify(self, X: ArrayLike, threat: Threat, exact: bool, time_limit: float) -> list[Certificates]:
        self._warn_if_published()
        model, rows = self._asked(X)
        return model.map_weights(rows, partial(self._certify_block, threat), current_watcher())

    def _certify_block(self, threat: Threat, block: Block) -> Certificates:
        """What smoothing proves about one block of rows; attacks are those on the ridge regression."""
        model = self.label_linear_
        ridge = cost_block(block.weights, model.labels, block.offset, LOWER)
        costs = self._against(threat, self._smoothed(block, ridge)).lower
        np.put_along_axis(costs, ridge.prediction[:, None], threat.unreachable(model.labels), axis=1)
        rows = model.held_rows(block, threat)
        return replace(model.radii_of(threat, block.features, rows), radius=costs.min(axis=1) - 1)

    def _against(self, threat: Threat, costs: FlipCosts) -> FlipCosts:
        """What smoothing proves in flips, in units of a threat."""
        return costs_in_sources(costs, self._labels) if threat is SOURCES else costs

    def costs_and_attacks(self, X: ArrayLike, exact: bool = False, threat: str = "flips") -> FlipCosts:
        """Flip costs in class indices with the attacks behind them, as an ensemble asks its base classifiers for them.

        Parameters
        ----------
        X : array-like of shape (n_test, n_features)
            Test inputs.
        exact : bool, default=False
            Find out as much as can be had, class by class.
        threat : str, default="flips"
            What costs count, as in :meth:`certify`.

        Returns
        -------
        FlipCosts
            Costs of smoothing from below, those of the ridge regression and its attacks from above, as if the label
            space were fixed.
        """
        asked = self._proven_threat(threat)
        self._warn_if_published()
        model, rows = self._asked(X)
        return self._against(asked, model.costs(rows, refine=self._smoothed))

    def _smoothed(self, block: Block, ridge: FlipCosts) -> FlipCosts:
        """What smoothing proves against each class, and no more than holds for the deployed prediction."""
        labels = self.label_linear_.labels
        if self._method == "white-box":
            costs = self._noise.white_box_costs(block.weights, labels, ridge.prediction)
        else:
            costs = self._black_box_costs(block.weights, labels, ridge.prediction)
        if labels.n_movable == 0:
            costs[:] = labels.unreachable
        # Noise draws from the whole label space: with any class removed, all is open.
        np.minimum(costs, FLIPS.to_remove_another(labels), out=costs)
        np.put_along_axis(costs, ridge.prediction[:, None], 0, axis=1)
        return replace(ridge, lower=costs if self._method == "published" else np.minimum(costs, ridge.lower))

    def _black_box_costs(
        self, weights: NDArray[Any], labels: Labels, prediction: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """One flip more than the probability of each class proves harmless."""
        most = labels.n_movable

        def flips_of(log_p: NDArray[np.float64]) -> NDArray[np.int64]:
            if self._method == "neyman-pearson":
                return self._noise.neyman_pearson_flips(log_p, most)
            return self._noise.divergence_flips(log_p, most, published=self._method == "published")

        flips = flips_of(self._noise.chernoff(weights, labels, prediction, flips_of))
        return np.where(flips < most, flips + 1, labels.unreachable)

    def _warn_if_published(self) -> None:
        check_is_fitted(self)
        if self._method == "published":
            warnings.warn(
                'method="published" is for reproducing the paper\'s figures: its radius is not proven for more than '
                'two classes, where it over-states; use "white-box", "neyman-pearson" or "kl".',
                stacklevel=4,
            )
