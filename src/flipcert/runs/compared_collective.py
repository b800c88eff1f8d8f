"""What a run says of one attack on all points, looked at again: files agree, and the attack that was found works."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.table import Table
from flipcert.report.result import Collective
from flipcert.report.words import plural
from flipcert.results.collective_certificate import CollectiveCertificate
from flipcert.runs.comparisons import ON_ALL, ON_ALL_REPLAYED, Place, Verification
from flipcert.runs.describe import COLLECTIVELY, describe_collective
from flipcert.runs.operations import lines_of
from flipcert.runs.plain_rows import replay_lines
from flipcert.runs.stored_run import StoredRun


def compare_collective(
    run: StoredRun,
    number: int,
    train: Table,
    model: Any,
    X_train: NDArray[Any],
    X_test: NDArray[Any],
    verification: Verification,
) -> None:
    """Compare what is told of one attack on all points; without a model, its files only."""
    stored = run.collective[number]
    if stored is None:
        return
    c, place, note = stored.certificate, Place(run.settings[number].name), verification.note
    told = json.loads(json.dumps(describe_collective(c)))
    note(ON_ALL, place, run.told[number][COLLECTIVELY], told)
    points = run.points[number]
    counted = [line.get("label") is None or line["label"] == line["prediction"] for line in points]
    predictions = [line["prediction"] for line in points]
    same = c.prediction.tolist() == predictions and c.counted.tolist() == counted
    note(ON_ALL, place, "predictions of the table", "others", same and c.threat == run.threat)
    for k, budget in enumerate(c.flips.tolist()):
        radii = [line["radius"] for line, own in zip(points, counted, strict=True) if own]
        alone = sum(radius < min(budget, _most(run)) for radius in radii)
        said, found = (f"{budget}: {plural(count, 'point')} one by one" for count in (c.changed_one_by_one[k], alone))
        note(ON_ALL, place, said, found)
    if model is None:
        verification.leave_out("Attacks on all points were not replayed for all models, for want of test points.")
        return
    verification.leave_out(
        "How many points one attack changes at most was not proven a second time, only compared with radii and with "
        "the attack that was found."
    )
    fresh = Collective.of(c, np.asarray(train.y), train.givers, train.rows) if _fits(c, train) else None
    for k, attack in enumerate(stored.attacks):
        if attack is not None:
            said = f"{c.flips[k]}: {plural(int(c.changed_at_least[k]), 'point')} changed"
            fault = "labels that are not there"
            if fresh is not None:
                fault = _fault(c, k, lines_of(attack), fresh, model, X_train, X_test, train)
            note(ON_ALL_REPLAYED, place, said, fault, not fault)


def _most(run: StoredRun) -> int:
    """The largest radius: whoever withstands that withstands any budget."""
    return run.n_sources if run.exposure.n_sources is not None and run.n_sources is not None else run.n_labels


def _fits(c: CollectiveCertificate, train: Table) -> bool:
    return c.n_labels == train.n_labels


def _fault(
    c: CollectiveCertificate,
    k: int,
    lines: list[dict[str, Any]],
    fresh: Collective,
    model: Any,
    X_train: NDArray[Any],
    X_test: NDArray[Any],
    train: Table,
) -> str:
    """What is wrong with the attack of a budget; nothing if it does what it should."""
    own = fresh.attacks[k]
    if own is None or lines_of(own) != lines:
        return "the table of attacks says another"
    # Where rows have several labels, what is changed is one of these.
    lines = [line | {"training_row": line["annotation"]} if "annotation" in line else line for line in lines]
    try:
        attacked, size = replay_lines(lines, c.threat, model, X_train, train)
    except (ValueError, LookupError, TypeError) as error:
        return (str(error).splitlines() or [type(error).__name__])[0]
    if size > c.flips[k]:
        return f"it takes {size}"
    after, said = attacked.predict(X_test), c.changed(k)
    changed = np.count_nonzero(after[said] != c.prediction[said])
    return "" if changed == said.size else f"{changed} of these changed"
