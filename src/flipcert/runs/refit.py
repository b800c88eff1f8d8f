"""A model of a run, fitted again, and what it makes of some points: compared with what the run says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flipcert.datasets.table import Table
from flipcert.ensemble.assembly import Assembly
from flipcert.ensemble.formed_weights import formed_weights
from flipcert.labels.threats import DELETIONS, FLIPS, SOURCES
from flipcert.report.words import Exposure, plural
from flipcert.runs.comparisons import (
    ASKED,
    BELOW,
    BETWEEN,
    CHANGED,
    ELECTED,
    HELD,
    IN_FLIPS,
    KNAPSACK,
    MET,
    NOT_AGAIN,
    RANGE,
    RECOUNT,
    REPLAYED,
    RERUN,
    SMALLER,
    SORTED,
    SOURCE_BOUND,
    SOURCE_SUMS,
    SUMMED,
    TOLD,
    VOTES,
    WEIGHTS,
    Place,
    Verification,
)
from flipcert.runs.inputs import scaled_features
from flipcert.runs.plain_changes import changes_opinion
from flipcert.runs.plain_elections import opinion_on_election, ranked, units_of
from flipcert.runs.plain_rows import replay_lines
from flipcert.runs.plain_sources import source_opinion
from flipcert.runs.plain_weights import weights_are_right
from flipcert.runs.settings import Settings
from flipcert.runs.store import IN_FLIPS as STORED_IN_FLIPS
from flipcert.runs.stored_run import Flip
from flipcert.verify.exact import NEVER, Voter
from flipcert.verify.opinion import Opinion, opinion_on_ensemble, opinion_on_model, opinion_on_votes, removal_cost
from flipcert.verify.replay import replay

# Models whose radii are computed again from weights.
_OF_WEIGHTS = ("svm", "ridge", "neighbors", "spreading")


def free_labels(train: Table) -> NDArray[np.bool_]:
    """Which labels can be flipped."""
    return np.ones(train.n_labels, np.bool_) if train.trusted is None else ~train.trusted


def _span(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _said(error: Exception) -> str:
    """What an error says, in the one line that a table has room for."""
    return (str(error).splitlines() or [type(error).__name__])[0]


@dataclass(frozen=True, eq=False)
class Refit:
    """A model of a run, fitted again, and the rows that it is asked about."""

    settings: Settings
    train: Table
    test: Table
    X_train: NDArray[Any]
    X_test: NDArray[Any]
    model: Any
    rows: NDArray[np.int64]
    verification: Verification
    exposure: Exposure

    @cached_property
    def _weights(self) -> list[tuple[NDArray[np.int64], NDArray[Any]]] | None:
        return formed_weights(self.model, self.X_test, self.rows)

    @property
    def _voters(self) -> list[Any]:
        return getattr(self.model, "estimators_", [self.model])

    def opinions(self) -> Iterator[Opinion]:
        """A second opinion on each row."""
        classes, open_space = self.model.classes_, self.settings.classes is None
        if self._is_assembly:
            yield from self._elections()
            return
        if self.train.rows is not None and (self.settings.partitions > 1 or self._weights is None):
            yield from self._predictions(
                " on several labels a row were not computed a second time, only compared with known attacks"
            )
            return
        codes, free = np.searchsorted(classes, np.asarray(self.train.y)), free_labels(self.train)
        partition = getattr(self.model, "partition_", np.zeros(codes.size))
        labels = [(codes[partition == i].tolist(), free[partition == i].tolist()) for i in range(len(self._voters))]
        if self._weights is None:
            votes = [np.searchsorted(classes, voter.predict(self.X_test[self.rows])) for voter in self._voters]
            yield from (opinion_on_votes(own, labels, classes.size, open_space) for own in np.transpose(votes).tolist())
            return
        self._compare_weights(self._weights)
        ask = opinion_on_model if self.settings.partitions == 1 else opinion_on_ensemble
        for t in range(self.rows.size):
            own = [weights[t].tolist() for _, weights in self._weights]
            yield ask([Voter.of(w, *pair, classes.size) for w, pair in zip(own, labels, strict=True)], open_space)

    @cached_property
    def _is_assembly(self) -> bool:
        """Whether more decides than a majority of voters that share no labels."""
        return isinstance(getattr(self.model, "electorate_", None), Assembly)

    def _elections(self) -> Iterator[Opinion]:
        """Opinions on run-offs and on voters that share labels: votes are counted again where they are sums."""
        if self._weights is None or self.train.rows is not None:
            yield from self._predictions(" were not computed a second time")
            return
        self._compare_weights(self._weights)
        if self.settings.copies == 1:
            self.verification.leave_out(
                f"What flip costs add to radii of {self.settings.name} was not computed a second time."
            )
        (codes, free, n_classes), members = self._labels, [own.tolist() for own, _ in self._weights]
        units = units_of(self.model.partition_.tolist(), free, members)
        open_space = self.settings.classes is None and n_classes > 2
        removal = removal_cost([(codes, free)], n_classes) if open_space else NEVER
        held = [[codes[i] for i in own] for own in members]
        for t in range(self.rows.size):
            orders = [
                ranked(weights[t].tolist(), y, n_classes) for (_, weights), y in zip(self._weights, held, strict=True)
            ]
            strays = any(order[0] not in y for order, y in zip(orders, held, strict=True))
            by_run_off = self.settings.vote == "runoff"
            yield opinion_on_election(orders, units, by_run_off, len(codes), removal if strays else NEVER)

    def _predictions(self, unchecked: str) -> Iterator[Opinion]:
        """Opinions on predictions alone, where there is no second way to radii."""
        self.verification.leave_out(f"Radii of {self.settings.name}{unchecked}.")
        for winner in np.searchsorted(self.model.classes_, self.model.predict(self.X_test)[self.rows]).tolist():
            yield Opinion(winner, 0, self.train.n_labels)

    def _compare_weights(self, weights: list[tuple[NDArray[np.int64], NDArray[Any]]]) -> None:
        """Compare the weights of all voters with plain NumPy."""
        X, x = scaled_features(self.settings, self.train.X, self.test.X[self.rows])
        base = self.settings.estimator()
        right = np.ones(self.rows.size, bool)
        for voter, (members, own) in zip(self._voters, weights, strict=True):
            least = min((str(own.dtype), getattr(voter, "precision_", "float64")), key=lambda name: np.finfo(name).bits)
            if self.train.rows is not None:
                # Weights of the labels of a row add up to that of the row.
                own = np.stack([np.bincount(self.train.rows, row, X.shape[0]) for row in own.astype(np.float64)])
                members = np.arange(X.shape[0])
            right &= weights_are_right(getattr(base, "estimator", base), X[members], x, own, least)
        for row, agrees in zip(self.rows.tolist(), right.tolist(), strict=True):
            self.verification.note(WEIGHTS, Place(self.settings.name, row), "those of the fit", "others", agrees)

    def compare(self, line: Mapping[str, Any], opinion: Opinion) -> None:
        """Compare what is stored about a point with a second opinion on it."""
        note, place = self.verification.note, self._place(line)
        note(ASKED if self._weights is None else SUMMED, place, line["prediction"], self._prediction(opinion))
        radius, upper = line["radius"], line["radius_upper"]
        in_flips = self.exposure.threat == FLIPS.name
        label = None if self.test.y is None else self.test.y[line["row"]].item()
        told = f"label {line.get('label')}, exact {line.get('exact')}"
        note(TOLD, place, told, f"label {label}, exact {radius == upper}")
        if in_flips and self._is_assembly:
            by_votes, n_labels = line["blackbox_radius"], self.train.n_labels
            if opinion.by_votes is not None:
                note(RECOUNT, place, by_votes, opinion.by_votes)
            agrees = 0 <= by_votes <= radius <= upper <= n_labels
            note(ELECTED, place, f"{by_votes}, {_span(radius, upper)}", f"in order, up to {n_labels}", agrees)
            return
        if not in_flips or (self.train.rows is not None and self.settings.partitions > 1):
            self._compare_other(line, opinion)
            return
        if self.settings.partitions > 1:
            note(VOTES, place, line.get("blackbox_radius"), opinion.by_votes)
        low, high = opinion.at_least, opinion.at_most
        stored, found = _span(radius, upper), _span(low, high)
        if self._weights is None:
            n_labels = self.train.n_labels
            note(RANGE, place, stored, f"from 0 to {n_labels}", 0 <= radius <= upper <= n_labels)
            if high < n_labels:
                note(HELD, place, stored, f"at most {high}", radius <= high)
        elif self.settings.model == "smoothed":
            note(BELOW, place, stored, found, radius <= low <= upper)
        elif opinion.known:
            note(SORTED if self.settings.partitions == 1 else KNAPSACK, place, stored, found)
        else:
            note(MET if low == high else BETWEEN, place, stored, found, low <= radius <= min(high, upper))

    def _compare_other(self, line: Mapping[str, Any], opinion: Opinion) -> None:
        """Compare a radius that counts something else than flips; the opinion is in flips."""
        note, place, threat = self.verification.note, self._place(line), self.exposure.threat
        radius, upper, limit = line["radius"], line["radius_upper"], self.exposure.reach
        stored, one_model = _span(radius, upper), self.settings.partitions == 1 and self.settings.model in _OF_WEIGHTS
        if threat == SOURCES.name and one_model and self._weights is not None:
            voter = self._voter(line["row"])
            at_least, known = source_opinion(voter, *self._sources, self.settings.classes is None)
            agrees = radius == upper == at_least if known else at_least <= radius <= upper
            note(SOURCE_SUMS if known else SOURCE_BOUND, place, stored, str(at_least), agrees)
        elif self._counts_changes and self._weights is not None:
            weights = self._weights[0][1][int(np.searchsorted(self.rows, line["row"]))].tolist()
            at_least, known = changes_opinion(threat, weights, *self._labels, self.settings.classes is None)
            agrees = radius == upper == at_least if known else at_least <= radius <= upper
            note(CHANGED, place, stored, str(at_least), agrees)
        else:
            note(
                NOT_AGAIN, place, stored, f"from 0 to {limit}", 0 <= radius <= upper <= max(limit, self.train.n_labels)
            )
            self.verification.leave_out(
                f"Radii of {self.settings.name} in {self.exposure.unit.nouns} were not computed a second time, only "
                "compared with known attacks."
            )
        if line.get("blackbox_radius") is not None:
            self.verification.leave_out(f"What votes alone prove in {self.exposure.unit.nouns} was not compared.")
        if (flips := line.get(STORED_IN_FLIPS)) is not None:
            least = flips <= opinion.at_most if self._weights is not None else flips <= self.train.n_labels
            exactly = opinion.known and self.settings.model in _OF_WEIGHTS
            agrees = flips == opinion.at_least if exactly else least
            note(IN_FLIPS, place, flips, _span(opinion.at_least, opinion.at_most), agrees)

    @property
    def _counts_changes(self) -> bool:
        """Whether radii in changed rows are computed again: of one machine, with a kernel of which it is known how."""
        kernel, one_machine = self.settings.options.get("kernel"), self.settings.partitions == 1
        one_machine = one_machine and self.settings.model == "svm" and self.settings.options["C"] == "auto"
        return one_machine and (kernel == "rbf" or self.exposure.threat == DELETIONS.name)

    @cached_property
    def _labels(self) -> tuple[list[int], list[bool], int]:
        """Class of each label, whether it is free, and how many classes there are."""
        codes = np.searchsorted(self.model.classes_, np.asarray(self.train.y)).tolist()
        return codes, free_labels(self.train).tolist(), self.model.classes_.size

    @cached_property
    def _sources(self) -> tuple[list[int], int]:
        """The source of each label, as a number, and how many there are."""
        ids, codes = np.unique(np.asarray(self.train.givers), return_inverse=True)
        return codes.tolist(), ids.size

    def _voter(self, row: int) -> Voter:
        """The only voter, for one of the rows."""
        assert self._weights is not None, "checked before"
        ((_, weights),) = self._weights
        return Voter.of(weights[int(np.searchsorted(self.rows, row))].tolist(), *self._labels)

    def compare_attack(self, line: Mapping[str, Any], opinion: Opinion, flips: list[Any]) -> None:
        """Replay an attack."""
        if self.exposure.threat != FLIPS.name or self.train.rows is not None:
            stored = "another class after the attack"
            names = ("training_row", "old_label", "new_label")
            lines = [own if isinstance(own, dict) else dict(zip(names, own, strict=True)) for own in flips]
            fault = self._fault_of_lines(line, opinion, lines)
            self.verification.note(RERUN, self._place(line), stored, fault, fault is None)
            return
        place, stored = self._place(line), f"another class after {plural(len(flips), 'flip')}"
        fault = self._fault(line, opinion, flips)
        self.verification.note(REPLAYED, place, stored, fault, fault is None)
        if self._weights is None:
            self.verification.note(SMALLER, place, line["radius"], stored, line["radius"] < len(flips))

    def _fault(self, line: Mapping[str, Any], opinion: Opinion, flips: list[Flip]) -> str | None:
        """What is wrong with an attack, if anything."""
        row, known, prediction = line["row"], line["radius_upper"] + 1, self._prediction(opinion)
        # In another block, weights may round to another model, one with another attack; the run says where.
        if len(flips) != known and not (line["rounding_sensitive"] and len(flips) > line["radius"]):
            return f"radius_upper speaks of {plural(known, 'flip')}"
        try:
            attacked = replay(flips, self.model, self.X_train, np.asarray(self.train.y), self.train.trusted)
        except ValueError as error:
            return _said(error)
        # The batch of the run, if the point alone is predicted as before.
        changed = (
            attacked.predict(self.X_test[[row]])[0] != prediction or attacked.predict(self.X_test)[row] != prediction
        )
        return None if changed else f"it is {prediction} still"

    def _fault_of_lines(self, line: Mapping[str, Any], opinion: Opinion, lines: list[dict[str, Any]]) -> str | None:
        """What is wrong with an attack under another threat than flips, if anything."""
        row, known, prediction = line["row"], line["radius_upper"] + 1, self._prediction(opinion)
        try:
            attacked, size = replay_lines(lines, self.exposure.threat, self.model, self.X_train, self.train)
        except (ValueError, LookupError, TypeError) as error:
            return _said(error)
        if size != known and not (line["rounding_sensitive"] and size > line["radius"]):
            return f"radius_upper speaks of {plural(known, self.exposure.unit.noun)}, and there are {size}"
        changed = (
            attacked.predict(self.X_test[[row]])[0] != prediction or attacked.predict(self.X_test)[row] != prediction
        )
        return None if changed else f"it is {prediction} still"

    def _place(self, line: Mapping[str, Any]) -> Place:
        return Place(self.settings.name, line["row"], bool(line["rounding_sensitive"]))

    def _prediction(self, opinion: Opinion) -> Any:
        return self.model.classes_[opinion.prediction].item()
