"""What the page shows of one attack on all test points: a bar for each budget, and what the attack found does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from flipcert.labels.threats import FLIPS
from flipcert.report.attack_parts import parts_of, row_name
from flipcert.report.chart import element
from flipcert.report.collective_words import counted_kind, evidence, finding, heading, share_of
from flipcert.report.pictures import Album
from flipcert.report.result import Attack, Collective, Result
from flipcert.report.words import Exposure, outside, percent, plural, shorten
from flipcert.results.collective_certificate import CollectiveCertificate

# Groups of points or labels, rows of a group and pictures of a group that are shown.
_MOST_GROUPS, _MOST_ROWS, _MOST_PICTURES = 12, 8, 4
_LONGEST = 18  # letters of a class


def collective_panel(result: Result, album: Album) -> dict[str, Any] | None:
    """Sentences, bars and lists about one attack on all points; None where nobody asked, or nothing can be done."""
    told = result.collective
    if told is None or Exposure.of(told.certificate).reach == 0 or told.certificate.n_counted == 0:
        return None
    c, exposure = told.certificate, Exposure.of(told.certificate)
    order = np.argsort(c.flips, kind="stable").tolist()
    last = order[-1]
    return {
        "finding": finding(c, last),
        "told": evidence(c, last),
        "key": _key(c),
        "budgets": [
            {
                "name": plural(int(c.flips[k]), exposure.unit.noun),
                "share": share_of(int(c.flips[k]), exposure),
                "bar": _bar(c, k, exposure),
                "numbers": _numbers(c, k),
            }
            for k in order
        ],
        "axis": element(
            "svg", *(element("text", f"{t} %", x=f"{t}%", y="12") for t in (0, 25, 50, 75, 100)), aria_hidden="true"
        ),
        "axis_name": "share of test points",
        "attacks": [own for k in reversed(order) if (own := _attack(result, told, k, album)) is not None],
        "heading": heading(c),
    }


def _parts(c: CollectiveCertificate, k: int) -> list[tuple[str, str, int]]:
    """The parts of a bar: style, what it is, how many points."""
    most, least, alone = (int(own[k]) for own in (c.changed_at_most, c.changed_at_least, c.changed_one_by_one))
    kept = "correct" if c.counts_correct else "unchanged"
    return [
        ("alone", f"proven to stay {kept}, point by point", c.n_counted - alone),
        ("jointly", f"proven to stay {kept}, against one attack", alone - most),
        ("open", "open: neither proven nor attacked", most - least),
        ("fallen", "changed by the attack that was found", least),
        ("wrong", "wrong without any attack", c.n_points - c.n_counted),
    ]


def _key(c: CollectiveCertificate) -> list[tuple[str, str]]:
    """What the colours mean, as far as they are there."""
    parts = [_parts(c, k) for k in range(len(c))]
    return [(own[0][0], own[0][1]) for own in zip(*parts, strict=True) if any(count for _, _, count in own)]


def _bar(c: CollectiveCertificate, k: int, exposure: Exposure) -> Markup:
    """All test points as one bar."""
    start, boxes, said = 0, [], []
    for style, name, count in _parts(c, k):
        if count:
            place, width = (f"{100 * own / c.n_points:.3f}%" for own in (start, count))
            told = f"{name}: {plural(count, 'test point')}, {percent(count / c.n_points)}"
            title = element("title", told)
            boxes.append(element("rect", title, x=place, width=width, y="0", height="100%", class_=f"bar {style}"))
            said.append(told)
        start += count
    budget = plural(int(c.flips[k]), exposure.unit.noun)
    return element("svg", *boxes, role="img", aria_label=f"One attack of {budget}. {'; '.join(said)}.")


def _numbers(c: CollectiveCertificate, k: int) -> list[tuple[str, str]]:
    """Shares under a bar."""
    proven = percent(c.certified_accuracy[k])
    if c.changed_at_most[k] == c.changed_at_least[k]:
        numbers = [("exactly", proven)]
    else:
        numbers = [("proven", proven)]
    if c.why_one_by_one is None:
        numbers.append(("point by point", percent(c.certified_one_by_one[k])))
    if c.changed_at_most[k] > c.changed_at_least[k] > 0:
        after = "after the attack found" if c.replayed else "after the attack found, at most"
        numbers.append((after, percent(c.accuracy_under_attack[k])))
    return numbers


def _attack(result: Result, told: Collective, k: int, album: Album) -> dict[str, Any] | None:
    """What the attack found for a budget does: which points fall, to which classes, and by which changes."""
    c, attack = told.certificate, told.attacks[k]
    fallen = c.changed(k)
    # What a larger budget does no better is shown once, with the smallest.
    again = any(_same(attack, told.attacks[j]) for j in range(len(c)) if c.flips[j] < c.flips[k])
    if attack is None or fallen.size == 0 or again:
        return None
    exposure = Exposure.of(c)
    pairs = zip(c.prediction[fallen].tolist(), c.prediction_after[k][fallen].tolist(), strict=True)
    return {
        "name": f"An attack of {plural(attack.size, exposure.unit.noun)}: {_spoils(c, fallen.size)}",
        "fallen": _groups(fallen.tolist(), pairs, result.test_images, "test row", album, _test_ids(result, fallen)),
        "changes": _changes(attack, result, album),
    }


def _same(attack: Attack | None, other: Attack | None) -> bool:
    """Whether two attacks change the same; one that was read from a file is another object."""
    if attack is None or other is None:
        return False
    names = ("indices", "new", "sources", "deleted", "inserted", "inserted_labels")
    return all(np.array_equal(getattr(attack, name), getattr(other, name)) for name in names)


def _spoils(c: CollectiveCertificate, count: int) -> str:
    least = "" if c.replayed else "at least "
    return f"{least}{plural(count, counted_kind(c))} {'changes' if count == 1 else 'change'}"


def _changes(attack: Attack, result: Result, album: Album) -> dict[str, Any]:
    """What the attack does to the training set."""
    if attack.threat == FLIPS.name:
        pairs = zip(attack.old.tolist(), attack.new.tolist(), strict=True)
        rows = attack.training_rows.tolist()
        return _groups(rows, pairs, result.train_images, "training row", album, result.train_ids)
    parts = parts_of(attack, result.train_ids)
    shown = [
        {"name": part.name, "full": part.full, "count": "", "rows": part.said, "pictures": []}
        for part in parts[: 2 * _MOST_GROUPS]
    ]
    more = len(parts) - len(shown)
    return {"groups": shown, "more": f"and {more:,} more" if more else ""}


def _test_ids(result: Result, rows: NDArray[np.int64]) -> dict[int, Any]:
    return {} if result.test_ids is None else dict(zip(rows.tolist(), result.test_ids[rows].tolist(), strict=True))


def _groups(
    rows: list[int],
    pairs: Iterable[tuple[Any, Any]],
    images: Any,
    called: str,
    album: Album,
    ids: Mapping[int, Any],
) -> dict[str, Any]:
    """Rows by the class they leave and the class they come to, the most frequent first."""
    by_pair: dict[tuple[Any, Any], list[int]] = {}
    for row, pair in zip(rows, pairs, strict=True):
        by_pair.setdefault(pair, []).append(row)
    # Among equals, those that come first.
    ranked = sorted(by_pair.items(), key=lambda own: -len(own[1]))
    groups = []
    # One more takes no more room than to say that there is one more.
    shown = _MOST_GROUPS + (len(ranked) == _MOST_GROUPS + 1)
    for (before, after), own in ranked[:shown]:
        named = ", ".join(row_name(row, ids) for row in own[:_MOST_ROWS])
        rest = f" and {len(own) - _MOST_ROWS:,} more" if len(own) > _MOST_ROWS else ""
        pictures = [album.show(images.get(row), f"{called} {row}") for row in own[:_MOST_PICTURES]]
        groups.append(
            {
                "name": f"{shorten(before, _LONGEST)} → {shorten(after, _LONGEST)}",
                "full": f"{outside(before)} → {outside(after)}",
                "count": f"{len(own):,}",
                "rows": f"{called}{'' if len(own) == 1 else 's'} {named}{rest}",
                "pictures": [picture for picture in pictures if picture],
            }
        )
    hidden = ranked[shown:]
    count = sum(len(own) for _, own in hidden)
    return {
        "groups": groups,
        "more": f"and {count:,} more, between {plural(len(hidden), 'other pair')} of classes" if hidden else "",
    }
