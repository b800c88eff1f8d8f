"""How a model of a run is fitted: on labels with all that is known of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.table import Table
from flipcert.labels.annotations import Annotations


def fit(model: Any, X: NDArray[Any], train: Table) -> Any:
    """Fit a model on inputs and the labels of a table, which come with trust and sources as far as they are known."""
    y = np.asarray(train.y)
    if train.rows is None:
        return model.fit(X, y, trusted=train.trusted, source=train.givers)
    if train.cap is not None:
        assert train.givers is not None, "checked when they were read"
        return model.fit(X, Annotations.capped(train.rows, y, train.givers, train.cap, train.trusted))
    return model.fit(X, Annotations(train.rows, y, train.givers, trusted=train.trusted))
