"""What sources could do, alone and together, in words and in a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.labels.threats import SOURCES
from flipcert.report.summary import Summary
from flipcert.report.words import capital, percent, plural
from flipcert.results.metrics import median_certified_robustness

ACCOUNTS = (
    "Accounts are not people. Whoever holds several ids counts as several sources here, and many accounts are cheap to "
    "open. If ids may belong together (a team, a vendor, an address), merge them: give a coarser id as the source, and "
    "certify again."
)


def colluding(summary: Summary) -> list[str]:
    """How many sources would have to collude, as sentences; none where radii do not count sources."""
    s, c = summary, summary.result.certificates
    if s.unit.threat != SOURCES.name or s.reach == 0 or not s.counts.any():
        return []
    told = []
    proven, n_sources = s.medians.proven, f"{s.reach:,} sources"
    if 0 < proven < s.reach and s.proven:
        which = "any one of these predictions" if s.counts.sum() > 1 else "this prediction"
        told.append(f"At least {proven + 1:,} of the {n_sources} would have to collude to change {which}.")
    elif proven == 0 and s.medians.attacked == 0:
        told.append("No collusion is needed for that: one source is enough, by the labels that it alone gave.")
    alone, pair = (int(np.sum(c.radius_upper < min(count, s.reach))) for count in (1, 2))
    if alone:
        told.append(
            f"Of all {plural(len(c), 'prediction')}, {percent(alone / len(c))} can each be changed by some one source"
            + (f", {percent(pair / len(c))} by some one or two" if pair > alone else "")
            + "; it need not be the same one for each."
        )
    if s.result.in_flips is not None:
        flips = min(median_certified_robustness(s.counts, s.result.in_flips), c.n_attackable)
        withstood = "any flips" if flips >= c.n_attackable else plural(flips, "flip")
        told.append(
            f"Counted label by label, at least half of the {s.kind} withstand {withstood}; but a source may change all "
            "of its labels at once."
        )
    return told


def sources_panel(summary: Summary) -> dict[str, Any] | None:
    """Sentences and tables about sources; None where radii do not count them."""
    s, c = summary, summary.result.certificates
    if s.unit.threat != SOURCES.name or s.reach == 0:
        return None
    alone = int(np.sum(c.radius_upper == 0))
    proven = int(np.sum(c.radius >= 1))
    # Neither is known where attacks are out of reach, such as those on an ensemble of any models.
    open_ = len(c) - alone - proven
    told = [
        f"Of {plural(len(c), 'prediction')}, {alone:,} {_be(alone)} known to be changeable by one source, with its own "
        f"labels alone; {proven:,} {_be(proven)} proven to withstand whatever any one source does"
        + (f"; of {open_:,} neither is known." if open_ else ".")
    ]
    powers = s.result.powers
    counted = any(power.n_changed for power in powers)
    if powers and counted:
        idle = not all(power.n_changed for power in powers)
        told.append(
            f"The sources with the most power. {_how_counted(s)} One attack of each"
            f"{' that changes any' if idle else ''} was replayed: its labels put there, the model fitted again, and "
            "another class predicted."
        )
        told[-1] += " No single one of the others is known to change a prediction." if idle else ""
    elif powers:
        told.append("The sources with the most labels. No single one of them is known to change a prediction.")
    return {
        "told": told,
        "counted": counted,
        "rows": [
            {
                "source": power.source,
                "labels": f"{power.n_labels:,}",
                "share": percent(power.n_labels / c.n_labels),
                "changed": f"{power.n_changed:,}",
                "part": percent(power.n_changed / len(c)),
            }
            for power in powers
        ],
        "kind": capital(s.kind),
        "beside_note": f"What shares of the {s.kind} withstand, in corrupt sources and in single flips.",
        "beside": _beside(s),
        "accounts": ACCOUNTS,
    }


def _be(count: int) -> str:
    return "is" if count == 1 else "are"


def _how_counted(s: Summary) -> str:
    """How many of the points are counted that a source can change alone."""
    if s.result.n_partitions == 1 and s.result.model in ("svm", "ridge", "neighbors", "spreading"):
        return "All predictions are counted that a source can change without any other, by exact sums of weights."
    return "At least so many predictions can be changed by it alone: an attack is known for each."


def _beside(s: Summary) -> list[tuple[str, str, str]]:
    """Radii in sources and in flips, at some quantiles."""
    if s.result.in_flips is None or not s.counts.any():
        return []
    c = s.result.certificates
    quantiles = (
        ("nine in ten", 0.9),
        ("three in four", 0.75),
        ("half", 0.5),
        ("one in four", 0.25),
        ("one in ten", 0.1),
    )
    rows = []
    for name, share in quantiles:
        flips = _withstood_by(share, s.result.in_flips[s.counts])
        rows.append(
            (
                f"at least {name}",
                s.exposure.amount(_withstood_by(share, c.radius[s.counts])),
                "any" if flips >= c.n_attackable else f"{flips:,}",
            )
        )
    return rows


def _withstood_by(share: float, radii: NDArray[np.int64]) -> int:
    """The largest r that such a share of the points withstands."""
    kept = np.sort(radii)[::-1]
    return int(kept[max(int(np.ceil(share * kept.size)), 1) - 1])
