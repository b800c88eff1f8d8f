"""The flips that change one prediction, one by one, and what each leaves of its lead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.table import Table
from flipcert.engine.watch import watched_by
from flipcert.ensemble import PartitionEnsemble
from flipcert.labels.threats import FLIPS
from flipcert.report.result import Attack
from flipcert.report.words import Exposure, is_proven
from flipcert.runs.inputs import scaled_features
from flipcert.runs.job import Stages
from flipcert.runs.row_ids import ids_in, plain_ids
from flipcert.runs.settings import Settings
from flipcert.runs.training import fit


@dataclass(frozen=True, eq=False)
class FlipList:
    """An attack on one prediction.

    Attributes
    ----------
    row : int
        The test point.
    prediction, label, target : Any
        What is predicted, what is right (None if not known), and what is predicted after the flips (None if no
        attack is known).
    radius : int
        Flips that are proven not to suffice; as many as there are labels if none ever do.
    proven : bool
        Whether that is so; a published formula says more than is proven.
    exposure : Exposure
        What can be attacked.
    exact : bool
        Whether no smaller attack exists.
    indices, old, new : ndarray
        Training rows and their labels before and after, most influential first.
    leads : ndarray
        Lead of the predicted class over the best other one before the first flip and after each; None if the model
        does not tell.
    unit : str
        What the lead is counted in.
    attack : Attack or None
        All of the attack, if one is known.
    id : Any
        What the test point is called; None if that is not known.
    train_ids : mapping of int to Any
        What the training rows of the attack are called, where that is known.
    """

    row: int
    prediction: Any
    label: Any
    target: Any
    radius: int
    proven: bool
    exposure: Exposure
    exact: bool
    indices: NDArray[np.int64]
    old: NDArray[Any]
    new: NDArray[Any]
    leads: NDArray[np.float64] | None
    unit: str
    attack: Attack | None
    id: Any = None
    train_ids: Mapping[int, Any] = field(default_factory=dict)

    @property
    def training_rows(self) -> NDArray[np.int64]:
        """The training row of each label that is flipped."""
        return self.indices if self.attack is None else self.attack.training_rows


def flip_list(
    train: Table,
    test: Table,
    settings: Settings,
    row: int,
    exact: bool,
    time_limit: float,
    n_jobs: int | None,
    stages: Stages,
    threat: str = FLIPS.name,
) -> FlipList:
    """Find the smallest known attack on one test point."""
    X_train, x = scaled_features(settings, train.X, test.X[row : row + 1])
    model = settings.estimator(n_jobs)
    y = np.asarray(train.y)
    with watched_by(stages):
        stages.stage("fitting")
        fit(model, X_train, train)
        stages.stage("looking for the attack")
        certificates = model.certify(x, threat=threat, exact=exact, time_limit=time_limit)
        (witness,) = model.worst_flips(x, threat=threat, exact=exact, time_limit=time_limit)
    classes = model.classes_
    first = int(np.searchsorted(classes, certificates.prediction[0]))
    step_by_step = witness is not None and threat == FLIPS.name and hasattr(model, "replay")
    path = model.replay(x, witness) if step_by_step else None
    leads = None if path is None else path[:, first] - np.delete(path, first, axis=1).max(axis=1)
    attack = None if witness is None else Attack.of(row, witness, y, train.givers, train.rows)
    test_ids = plain_ids(test.ids)
    return FlipList(
        row=row,
        prediction=certificates.prediction[0].item(),
        label=None if test.y is None else test.y[row].item(),
        target=None if witness is None else certificates.target[0].item(),
        radius=int(certificates.radius[0]),
        proven=is_proven(certificates),
        exposure=Exposure.of(certificates),
        exact=bool(certificates.exact[0]),
        indices=np.empty(0, np.int64) if witness is None else witness.indices,
        old=y[:0] if witness is None else y[witness.indices],
        new=y[:0] if witness is None else witness.labels,
        leads=leads,
        unit="votes" if isinstance(model, PartitionEnsemble) else "score",
        attack=attack,
        id=None if test_ids is None else test_ids[row].item(),
        train_ids=ids_in([attack], train.ids),
    )
