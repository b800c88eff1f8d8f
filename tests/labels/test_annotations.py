"""Annotations as a value: what they refuse, how weights are scaled, how they are told, relabelled and sent."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import flipcert
from flipcert.engine.cluster.packing import pack, unpack

ROW = np.array([0, 1, 1, 2, 2, 2])
LABEL = np.array(["cat", "gnu", "cat", "gnu", "gnu", "cat"])
X = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 2.0]])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"row": [0, 1.5]}, r"^row must hold whole numbers; got 1\.5\.$"),
        ({"row": ["a"]}, r"^row must hold whole numbers; got 'a' of type"),
        ({"row": [0, np.nan]}, r"^row must hold whole numbers; got nan\.$"),
        ({"row": [0, -1]}, r"^row must be at least 0; got -1\.$"),
        ({"row": [[0, 1]]}, r"^row must be one-dimensional; got shape \(1, 2\)\.$"),
        ({"row": [0, 10**30]}, r"^row must be at most 2\*\*62; got 10{30}\.$"),
        ({"row": [0, -(10**400)]}, r"^row must be at least 0; got -10{400}\.$"),
        ({"row": np.array([0, "a"], object)}, r"^row must hold whole numbers; got 'a'\.$"),
        ({"row": np.array([0, True], object)}, r"^row must hold whole numbers; got True\.$"),
        ({"row": np.ma.array(ROW, mask=ROW == 1)}, r"^row must have no masked entries; got 2\. Fill them in"),
        ({"row": []}, r"^row is empty; give at least one annotation\.$"),
        ({"label": LABEL[:5]}, r"^label has 5 entries, but row has 6; give one of each for every annotation\.$"),
        ({"label": LABEL[:, None]}, r"^label must be one-dimensional, one entry an annotation; got shape \(6, 1\)\.$"),
        ({"label": None}, r"^label must be one-dimensional, one entry an annotation; got shape \(\)\.$"),
        ({"label": [0, 1, 0, 1, np.nan, 1]}, "^Input label contains NaN"),
        ({"source": [1, 2]}, r"^source has 2 entries, but row has 6; give one of each for every annotation\.$"),
        ({"source": "all of them"}, r"^source must be one-dimensional, one entry an annotation; got shape \(\)\.$"),
        ({"source": [1, 2, 3, 4, 5, None]}, "^source must name the source of every label, and entry 5 is None"),
        ({"weight": np.ones(5)}, r"^weight has 5 entries, but row has 6; give one of each for every annotation\.$"),
        ({"weight": [1, 1, 1, 1, 1, -0.5]}, r"^weight must hold finite numbers that are not negative; got -0\.5\.$"),
        ({"weight": [1, 1, 1, 1, 1, np.nan]}, r"^weight must hold finite numbers that are not negative; got nan\.$"),
        ({"weight": [1, 1, 1, 1, 1, np.inf]}, r"^weight must hold finite numbers that are not negative; got inf\.$"),
        ({"weight": list("abcdef")}, r"^weight must be numbers; got an array of type <U1\.$"),
        (
            {"weight": [1, 0, 0, 1, 1, 1]},
            r"^weight must be above 0 for some annotation of every row; got only zeros in row 1\.$",
        ),
        ({"label": np.ma.array(LABEL, mask=ROW == 0)}, r"^label must have no masked entries; got 1\. Fill them in"),
        (
            {"weight": np.ma.array(ROW + 1.0, mask=ROW == 2)},
            r"^weight must have no masked entries; got 3\. Fill them in",
        ),
        ({"trusted": np.ma.array(ROW > 0, mask=True)}, r"^trusted must have no masked entries; got 6\. Fill them in"),
        ({"trusted": np.ones(4, bool)}, r"^trusted has 4 entries, but row has 6; give one of each"),
        ({"trusted": np.ones(6)}, "^trusted must be a boolean mask with one entry for each of the 6 labels"),
    ],
)
def test_what_is_refused(arguments, told):
    with pytest.raises(ValueError, match=told):
        flipcert.Annotations(**{"row": ROW, "label": LABEL, **arguments})


@pytest.mark.parametrize("cap", [0, -3, np.nan, np.inf, "many", None])
def test_caps_that_are_none(cap):
    with pytest.raises(ValueError, match=r"^cap must be a positive number"):
        flipcert.Annotations.capped(ROW, LABEL, source=ROW, cap=cap)


def test_caps_need_sources():
    with pytest.raises(ValueError, match=r"^source must name who gave each label, as weights are capped by source"):
        flipcert.Annotations.capped(ROW, LABEL, None)
    with pytest.raises(ValueError, match=r"^source has 5 entries, but row has 6"):
        flipcert.Annotations.capped(ROW, LABEL, ROW[:5])


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ([0, 1, 1, 2, 2, 3], r"^row must hold whole numbers from 0 to 2, as X has 3 rows; got 3\.$"),
        ([0, 1, 1, 2, 2, 2**61], "^row must hold whole numbers from 0 to 2, as X has 3 rows; got 2305843009213693952"),
        ([0, 2, 2, 2, 2, 2], "^every row of X needs an annotation, and 1 of 3 have none, row 1 first; leave rows"),
        ([0, 0, 0, 1, 1, 1], "^every row of X needs an annotation, and 1 of 3 have none, row 2 first; leave rows"),
    ],
)
def test_rows_that_are_not_those_of_the_inputs(row, told):
    with pytest.raises(ValueError, match=told):
        flipcert.KernelRidge().fit(X, flipcert.Annotations(row, LABEL))


@pytest.mark.parametrize(("name", "values"), [("source", list("abcabc")), ("trusted", np.zeros(6, bool))])
def test_what_annotations_say_is_not_said_twice(name, values):
    with pytest.raises(ValueError, match=rf"^{name} must not be given beside Annotations, .*, {name}=\.\.\.\)\.$"):
        flipcert.KernelRidge().fit(X, flipcert.Annotations(ROW, LABEL), **{name: values})


@pytest.mark.parametrize(
    "model",
    [
        flipcert.MilpSVM(),
        flipcert.LogisticRegression(),
        flipcert.SmoothedLinear(),
        flipcert.BoundedNetwork(),
        flipcert.FixedBudget(DecisionTreeClassifier(random_state=0), lambda model, X, flips: flips < 1),
        flipcert.PartitionEnsemble(DecisionTreeClassifier(random_state=0), 2),
        flipcert.PartitionEnsemble(flipcert.SmoothedLinear(), 2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_who_takes_one_label_a_row_says_so(model):
    with pytest.raises(ValueError, match=r"^y must hold one label for each row of X; got Annotations, but .*[^.]\.$"):
        model.fit(X, flipcert.Annotations(ROW, LABEL))


@pytest.mark.parametrize("threat", ["deletions", "insertions", "replacements", "edits"])
@pytest.mark.parametrize("model", [flipcert.KernelSVM("rbf"), flipcert.KernelRidge("rbf")])
def test_rows_with_several_labels_stay(model, threat):
    model.fit(X, flipcert.Annotations(ROW, LABEL))
    with pytest.raises(
        ValueError, match=rf'^threat="{threat}" is refused by {type(model).__name__}: rows have several'
    ):
        model.certify(X, threat=threat)


def test_sources_are_needed_for_what_counts_them():
    model = flipcert.KernelRidge().fit(X, flipcert.Annotations(ROW, LABEL))
    with pytest.raises(ValueError, match=r"nobody said who gave the labels; .* or to Annotations"):
        model.certify(X, threat="sources")


def test_one_class_only():
    with pytest.raises(ValueError, match=r"y has one class only"):
        flipcert.KernelRidge().fit(X, flipcert.Annotations(ROW, ["cat"] * 6))


def test_weights_of_a_row_add_up_to_one():
    assert flipcert.Annotations(ROW, LABEL).share.tolist() == [1, 1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3]
    # The unit of weights does not matter, and neither does how large or small they are.
    for unit in (1.0, 7.0, 1e308, 5e-324):
        equal = flipcert.Annotations(ROW, LABEL, weight=np.full(6, unit))
        assert equal.share.tolist() == flipcert.Annotations(ROW, LABEL).share.tolist()
    weighted = flipcert.Annotations(ROW, LABEL, weight=[9, 1, 3, 0, 1, 4])
    assert weighted.share.tolist() == [1, 0.25, 0.75, 0, 0.2, 0.8]


def test_volumes_are_capped():
    source = np.array(["a", "a", "b", "a", "b", "c"])
    capped = flipcert.Annotations.capped(ROW, LABEL, source, cap=2)
    assert capped.weight.tolist() == [1 / 3, 1 / 3, 1 / 2, 1 / 3, 1 / 2, 1 / 2]
    assert np.allclose(capped.share, [1, 2 / 5, 3 / 5, 1 / 4, 3 / 8, 3 / 8], rtol=1e-15)
    assert capped.source.tolist() == source.tolist()
    # Nobody gave more than 100 labels.
    assert (
        flipcert.Annotations.capped(ROW, LABEL, source).share.tolist()
        == flipcert.Annotations(ROW, LABEL).share.tolist()
    )


def test_how_they_are_told():
    assert repr(flipcert.Annotations(ROW, LABEL)) == "Annotations(6 labels of 3 rows)"
    told = repr(flipcert.Annotations([0], ["a"], source=["x"], trusted=[True]))
    assert told == "Annotations(1 label of 1 row by 1 source, 1 trusted)"
    assert len(flipcert.Annotations(ROW, LABEL)) == 6


def test_equality_is_identity():
    one, other = flipcert.Annotations(ROW, LABEL), flipcert.Annotations(ROW, LABEL)
    assert one == one
    assert one != other
    assert len({one, other}) == 2


def test_later_changes_of_what_was_given_change_nothing():
    row, label, weight, trusted = ROW.copy(), LABEL.copy(), np.ones(6), np.zeros(6, bool)
    annotations = flipcert.Annotations(row, label, weight=weight, trusted=trusted)
    row[:], label[:], weight[:], trusted[:] = 0, "gnu", 0, True
    assert annotations.row.tolist() == ROW.tolist()
    assert annotations.label.tolist() == LABEL.tolist()
    assert annotations.weight.tolist() == [1] * 6
    assert not annotations.trusted.any()
    with pytest.raises(ValueError, match=r"read-only"):
        annotations.label[0] = "gnu"


def refuses_changes(annotations):
    for name in ("row", "label", "weight", "trusted", "share"):
        assert not getattr(annotations, name).flags.writeable
        with pytest.raises(AttributeError, match=f"^{name} of Annotations cannot be set; make others"):
            setattr(annotations, name, np.zeros(6))
        with pytest.raises(AttributeError, match=f"^{name} of Annotations cannot be deleted"):
            delattr(annotations, name)
    return True


@pytest.mark.parametrize(
    "sent", [lambda own: own, copy.copy, copy.deepcopy, lambda own: pickle.loads(pickle.dumps(own))]
)
def test_annotations_stay_as_they_are(sent):
    annotations = sent(flipcert.Annotations(ROW, LABEL, list("abcabc"), [1, 2, 3, 4, 5, 6], ROW == 1))
    assert annotations.n_rows == 3
    assert refuses_changes(annotations)
    assert refuses_changes(annotations.relabelled(LABEL[::-1]))
    part, rows = annotations.some(np.array([1, 2]), 0)
    assert (part.n_rows, rows.tolist(), part.source.tolist()) == (1, [1], ["b", "c"])
    assert refuses_changes(part)


def test_rows_may_be_integers_of_python():
    annotations = flipcert.Annotations(ROW.astype(object), LABEL)
    assert annotations.row.dtype == np.int64
    assert annotations.row.tolist() == ROW.tolist()


def test_masks_that_hide_nothing():
    annotations = flipcert.Annotations(np.ma.array(ROW), np.ma.array(LABEL), trusted=np.ma.array(ROW == 1))
    assert annotations.trusted.tolist() == (ROW == 1).tolist()


def test_masked_entries_of_trusted_are_refused_by_fit():
    with pytest.raises(ValueError, match=r"^trusted must have no masked entries; got 3\."):
        flipcert.KernelSVM().fit(X, [0, 1, 1], trusted=np.ma.array([True] * 3, mask=True))


def test_frames_and_lists_of_any_kind():
    table = pd.DataFrame({"row": ROW, "label": LABEL, "who": [1, "1", 2.5, "x", "1", 1]})
    annotations = flipcert.Annotations(table["row"], table["label"], table["who"])
    assert len(annotations.sources) == 4
    assert annotations.source.tolist() == table["who"].tolist()
    model = flipcert.KernelRidge().fit(X, annotations)
    assert np.array_equal(
        model.decision_function(X),
        flipcert.KernelRidge().fit(X, flipcert.Annotations(list(ROW), list(LABEL))).decision_function(X),
    )


def test_witnesses_are_put_into_annotations():
    annotations = flipcert.Annotations(ROW, LABEL, source=list("abcabc"), weight=[1, 2, 3, 4, 5, 6])
    after = flipcert.Witness(np.array([5, 0]), np.array(["elephant", "gnu"])).apply(annotations)
    assert isinstance(after, flipcert.Annotations)
    assert after.label.tolist() == ["gnu", "gnu", "cat", "gnu", "gnu", "elephant"]
    assert annotations.label.tolist() == LABEL.tolist()
    assert np.array_equal(after.share, annotations.share)
    assert after.source.tolist() == annotations.source.tolist()
    with pytest.raises(ValueError, match=r"label has 2 entries, but row has 6"):
        annotations.relabelled(["cat", "gnu"])


def test_witnesses_refuse_labels_they_are_not_about():
    annotations = flipcert.Annotations(ROW, LABEL)
    witness = next(filter(None, flipcert.KernelSVM("linear").fit(X, annotations).worst_flips(X)))
    assert witness.n_labels == 6
    assert witness.apply(annotations.label).size == 6
    told = "^labels must be the 6 labels that the model was fitted to; got "
    for other, seen in (
        (None, "None"),
        (LABEL[:3], r"an array of shape \(3,\)"),
        (LABEL[None], r"an array of shape \(1, 6\)"),
    ):
        with pytest.raises(ValueError, match=rf"{told}{seen}\.$"):
            witness.apply(other)
    made = flipcert.Witness(np.array([3]), np.array(["cat"]))
    assert made.apply(LABEL).tolist() == ["cat", "gnu", "cat", "cat", "gnu", "cat"]
    for other in (None, LABEL[:3]):
        with pytest.raises(ValueError, match=r"^labels must be the at least 4 labels that the model was fitted to"):
            made.apply(other)


@pytest.mark.parametrize("sent", [lambda value: pickle.loads(pickle.dumps(value)), lambda value: unpack(pack(value))])
def test_annotations_travel(sent):
    annotations = flipcert.Annotations(ROW, LABEL, list("abcabc"), [1, 2, 3, 4, 5, 6], ROW == 1)
    there = sent(annotations)
    for name in ("row", "label", "source", "weight", "trusted", "share"):
        assert np.array_equal(getattr(there, name), getattr(annotations, name))
    assert repr(there) == repr(annotations)
