"""What a verification compares, how, and what it finds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Comparison:
    """What is compared, and how."""

    what: str
    how: str


LABELS = Comparison("labels", "all of them, and those that are not trusted, counted; classes and sources")
SETTINGS = Comparison("settings", "what the summary says of a model, described anew from what decides its results")
METRICS = Comparison("metrics", "shares, medians and counts of the summary, counted anew from all lines of the table")
WEIGHTS = Comparison("weights", "from kernel, equations or distances in plain NumPy, to rounding")
SUMMED = Comparison("predictions", "weights added up as whole numbers")
ASKED = Comparison("predictions", "fitted and asked again")
TOLD = Comparison("other columns", "label of the test file; exact where radius and radius_upper meet")
RANGE = Comparison("radii", "no weights, so not computed again: within radius_upper, and that within all labels")
VOTES = Comparison("radii by votes", "votes counted, then dynamic programming")
SORTED = Comparison("radii", "one model: all gains sorted, and added up as whole numbers")
KNAPSACK = Comparison("radii", "ensembles: exact cost of every vote, then dynamic programming")
MET = Comparison("radii", "ensembles, weights of both signs: two bounds of that kind, which meet")
BETWEEN = Comparison("radii", "ensembles, weights of both signs: between two such bounds")
RECOUNT = Comparison(
    "radii by votes", "run-off or copies: votes and preferences counted, all pairs of classes looked at"
)
ELECTED = Comparison("radii", "run-off or copies: none below the one by votes, and all within the labels")
BELOW = Comparison("radii", "smoothing: at most the exact radius of the same ridge regression")
HELD = Comparison("radii", "no weights, so not computed again: not enough to remove a class")
SMALLER = Comparison("radii", "no weights, so not computed again: smaller than the replayed attack")
REPLAYED = Comparison("attacks", "labels put there, fitted and asked again: another prediction")
SOURCE_SUMS = Comparison("radii", "one model: all gains of a source added up, sorted, and added up as whole numbers")
SOURCE_BOUND = Comparison("radii", "one model: at least as many sources as such sums say; a class could be removed")
CHANGED = Comparison("radii", "one model: all gains of changed rows sorted, and added up as whole numbers")
NOT_AGAIN = Comparison("radii", "under this threat not computed again: within radius_upper, and that within the limit")
IN_FLIPS = Comparison("radii in flips", "as those of a run in flips")
POWERS = Comparison("single sources", "labels counted; no more points than those that one source can change")
RECOUNTED = Comparison("single sources", "one model: fitted again, points counted again that each can change alone")
RERUN = Comparison("attacks", "labels and rows changed, fitted and asked again: another prediction")
ON_ALL = Comparison("one attack on all", "the same in summary, certificate and tables; point by point, radii counted")
ON_ALL_REPLAYED = Comparison("one attack on all", "made, fitted and asked again: all points change that should")
CHECKED = Comparison("random check", "labels that were drawn, checked and wrong, and predictions it proves, counted")
BY_CHANCE = Comparison("random check", "how many labels are wrong at most, in whole numbers")
WRITTEN = Comparison("labels to check", "files by their digests; the summary described anew from them")
BEFORE = Comparison("labels to check", "what is proven before any check counted from the table; present labels read")
COMPARISONS = (
    LABELS,
    CHECKED,
    BY_CHANCE,
    SETTINGS,
    METRICS,
    WEIGHTS,
    SUMMED,
    ASKED,
    TOLD,
    RANGE,
    VOTES,
    SORTED,
    KNAPSACK,
    MET,
    BETWEEN,
    RECOUNT,
    ELECTED,
    BELOW,
    HELD,
    SMALLER,
    SOURCE_SUMS,
    SOURCE_BOUND,
    CHANGED,
    NOT_AGAIN,
    IN_FLIPS,
    POWERS,
    RECOUNTED,
    REPLAYED,
    RERUN,
    ON_ALL,
    ON_ALL_REPLAYED,
    WRITTEN,
    BEFORE,
)


@dataclass(frozen=True)
class Place:
    """A point of a run: its model, its row, and whether the run says that rounding could matter there."""

    model: str
    row: int | None = None
    sensitive: bool = False


@dataclass(frozen=True)
class Difference:
    """Something that a run says and that did not come out again."""

    comparison: Comparison
    place: Place
    stored: str
    found: str


@dataclass
class Verification:
    """How often everything was compared, and what differs."""

    n_points: int = 0
    compared: Counter[Comparison] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    left_out: dict[str, None] = field(default_factory=dict)

    def leave_out(self, sentence: str) -> None:
        """Note what is not looked at, once."""
        self.left_out[sentence] = None

    def note(
        self, comparison: Comparison, place: Place, stored: object, found: object, agrees: bool | None = None
    ) -> None:
        """Note one comparison. Unless it is said whether both sides agree, they have to be equal."""
        self.compared[comparison] += 1
        if not (stored == found if agrees is None else agrees):
            self.differences.append(Difference(comparison, place, str(stored), str(found)))
