"""What compiled code finds out about a block of rows, a row of a table each, as certificates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flipcert.ensemble._jit.outcome import BLACKBOX_COST, LOWER_COST, RUNNER_UP, SENSITIVE, TARGET, UPPER_COST, WINNER
from flipcert.labels.labels import Labels
from flipcert.labels.threats import FLIPS, Threat
from flipcert.results.certificates import Certificates


def certificates_of_table(table: NDArray[np.int64], labels: Labels, threat: Threat = FLIPS) -> Certificates:
    """Read a table of costs as compiled code fills it; labels stay class indices."""
    return Certificates(
        prediction=table[:, WINNER],
        radius=table[:, LOWER_COST] - 1,
        radius_upper=table[:, UPPER_COST] - 1,
        blackbox_radius=table[:, BLACKBOX_COST] - 1,
        runner_up=table[:, RUNNER_UP],
        target=np.ma.masked_less(table[:, TARGET], 0),
        rounding_sensitive=table[:, SENSITIVE] > 0,
        n_labels=labels.n_labels,
        n_attackable=labels.n_movable,
        threat=threat.name,
        n_sources=labels.n_sources,
    )
