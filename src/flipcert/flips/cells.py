"""Labels of one class from one source, added up: what a row of weights is to an attacker who holds sources."""

from __future__ import annotations

import numpy as np

from flipcert.flips._jit.sources import Cells
from flipcert.labels.labels import Labels


def cells_of(labels: Labels) -> Cells:
    """Which labels are added up together; trusted ones apart, as no source can change them."""
    assert labels.sources is not None, "checked before"
    n_sources, movable = len(labels.sources), labels.coded.movable
    keys = labels.codes * n_sources + labels.sources.codes
    there, cell = np.unique(keys[movable], return_inverse=True)
    of = np.empty(labels.n_labels, np.int64)
    of[movable] = cell
    of[~movable] = there.size + labels.codes[~movable]
    bounds = np.searchsorted(there, np.arange(labels.n_classes + 1) * n_sources)
    return Cells(of, there % n_sources, bounds, n_sources)
