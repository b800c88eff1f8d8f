"""Collective certificates as users meet them: in words, in files, in a plot; whatever else a file holds is refused."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pytest

import flipcert
from tests.helpers.collective import attack, made_up, same
from tests.results.test_certificate_files import archive_of, corruptions, members_of, npy_of

THREATS = ("flips", "sources", "deletions", "insertions", "replacements", "edits")
SAVED = r"is not a file of a saved collective certificate: .*\.$"


def refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=SAVED) as caught:
        flipcert.CollectiveCertificate.load(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def altered(path, **arrays):
    """What a file says that holds other arrays than it should; a header is given as what differs in it."""
    made_up().save(path)
    members = members_of(path.read_bytes())
    if "header" in arrays:
        header = json.loads(str(np.load(io.BytesIO(members["header.npy"]))))
        arrays["header"] = np.array(json.dumps(header | arrays["header"]))
    return refused(path, archive_of(members | {f"{name}.npy": npy_of(own) for name, own in arrays.items()}))


def test_it_reads_as_a_line_a_budget():
    assert repr(made_up()).splitlines() == [
        "CollectiveCertificate: how many of 11 right predictions one attack changes",
        "  2 flips: 0 (found) to 1 (proven), point by point 2; certified accuracy 0.833",
        "  4 flips: exactly 2, point by point 6; certified accuracy 0.750",
        "  9 flips: 3 (found) to 5 (proven), point by point 9; certified accuracy 0.500",
    ]
    others = made_up(threat="sources", counts_correct=False, flips=np.array([1, 4, 1000]))
    assert str(others).splitlines()[:2] == [
        "CollectiveCertificate: how many of 12 predictions one attack changes",
        "       1 source: 0 (found) to 1 (proven), point by point 2; certified share 0.917",
    ]


def test_budgets_are_chosen_by_a_number_a_slice_or_an_array():
    whole = made_up()
    budgets = list(whole)
    assert [budget.flips for budget in budgets] == [2, 4, 9]
    assert budgets[-1] == whole[-1] == whole[2]
    for k, budget in enumerate(budgets):
        assert all(type(own) in (int, float) for own in budget[:-1])
        for name in budget._fields[:-1]:
            assert getattr(budget, name) == getattr(whole, name)[k]
        assert budget.attack is whole.attacks[k]
    some = whole[whole.flips > 2]
    assert isinstance(some, flipcert.CollectiveCertificate)
    assert list(some) == budgets[1:] == list(whole[1:]) == list(whole[[1, 2]])
    assert same(whole[:], whole)
    np.testing.assert_array_equal(some.prediction_after, whole.prediction_after[1:])
    assert some.changed(0).tolist() == whole.changed(1).tolist()
    assert repr(some).splitlines()[1:] == repr(whole).splitlines()[2:]
    assert len(whole[:0]) == 0
    with pytest.raises(IndexError, match="there are 3 budgets; "):
        whole[3]
    with pytest.raises(IndexError, match="by a number, a slice, or an array of one dimension"):
        whole[np.array([[0, 1]])]
    assert whole.changed(-1).tolist() == whole.changed(2).tolist()
    for budget in (3, -4, True, None, [0, 1], slice(0, 2), 1.5):
        with pytest.raises(ValueError, match=r"^budget must "):
            whole.changed(budget)


def test_counts_of_one_read_as_english():
    one = made_up(counts_correct=True)
    counted = np.zeros(12, bool)
    counted[np.flatnonzero(one.counted)[0]] = True
    alone = replace(one.without_attacks(), counted=counted)
    assert repr(alone).startswith("CollectiveCertificate: how many of 1 right prediction one attack changes")
    assert repr(replace(alone, counts_correct=False)).startswith("CollectiveCertificate: how many of 1 prediction one")
    nothing = replace(alone, counted=np.zeros(12, bool))
    assert nothing.summary().endswith("so there is none that an attack could spoil.")


@pytest.mark.parametrize("threat", THREATS)
@pytest.mark.parametrize("counts_correct", [True, False])
def test_what_is_saved_comes_back(tmp_path, threat, counts_correct):
    certificate = made_up(threat=threat, counts_correct=counts_correct, why_one_by_one="nobody knows more")
    certificate.save(tmp_path / "saved.npz")
    assert same(flipcert.CollectiveCertificate.load(tmp_path / "saved.npz"), certificate)
    first = (tmp_path / "saved.npz").read_bytes()
    certificate.save(tmp_path / "saved.npz")
    assert (tmp_path / "saved.npz").read_bytes() == first


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1, 2]),
        np.array([0.5, 1.5, 2.5]),
        np.array([b"a", b"b", b"c"]),
        np.array(["<b>", "ünïcødé → 漢字", ""], object),
        np.array([1, 2, 30], object),
        np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "M8[D]"),
    ],
)
def test_labels_of_any_plain_kind_come_back(tmp_path, labels):
    certificate = made_up(labels, attacks=[None, attack(labels, "flips", 1), attack(labels, "flips", 8)])
    certificate.save(tmp_path / "saved.npz")
    loaded = flipcert.CollectiveCertificate.load(tmp_path / "saved.npz")
    assert same(loaded, certificate)
    assert [type(label) for label in loaded.prediction.tolist()] == [
        type(own) for own in certificate.prediction.tolist()
    ]


def test_two_classes_that_are_booleans_come_back(tmp_path):
    labels = np.array([False, True, True])
    certificate = replace(made_up(labels), classes=np.array([False, True]))
    changed = (certificate.prediction_after != certificate.prediction) & certificate.counted
    certificate = replace(certificate, changed_at_least=changed.sum(axis=1))
    certificate.save(tmp_path / "saved.npz")
    assert flipcert.CollectiveCertificate.load(tmp_path / "saved.npz").prediction.dtype == np.bool_


def test_what_could_not_be_read_again_is_not_saved(tmp_path):
    for wrong, said in (
        (made_up(np.array([1, "1", 2.0], object)), "would come back as"),
        (replace(made_up(), model={"reg": object()}), "model must hold numbers"),
        (replace(made_up(), changed_at_most=np.array([1, 2, 99])), "must ascend"),
    ):
        with pytest.raises(ValueError, match=rf"^this certificate cannot be saved: .*{said}.*\.$"):
            wrong.save(tmp_path / "saved.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"changed_at_most": np.array([1, 7, 5])}, "must ascend"),
        ({"changed_at_most": np.array([1, 2, 10])}, "must ascend"),
        ({"changed_at_most": np.array([1, 1, 5])}, "must ascend"),
        ({"changed_one_by_one": np.array([2, 6, 12])}, "must ascend"),
        ({"changed_one_by_one": np.array([2, 9, 8])}, "changed_one_by_one must not fall"),
        ({"changed_at_least": np.array([0, 2, 4])}, "is not the number of counted points"),
        ({"flips": np.array([2, 4, 7])}, "at most 7 flips"),
        ({"flips": np.array([2, 4, 4])}, "must not fall where the budget grows"),
        ({"flips": np.array([2, 4, -9])}, "flips must hold one whole number"),
        ({"flips": np.array([2, 4])}, "one whole number for each budget"),
        ({"flips": np.array([2.0, 4.0, 9.0])}, "flips must hold one whole number"),
        ({"counted": np.ones(11, bool)}, "prediction must hold one label a point"),
        ({"counted": np.ones(12)}, "counted must say"),
        ({"prediction": np.array([["cat"] * 12])}, "one label a point"),
        ({"prediction_after": np.array(["cat"] * 36)}, "one for each budget and point"),
        ({"prediction_after": np.full((3, 12), "cat")}, "where no attack is known"),
        ({"prediction": np.arange(12)}, "labels of the same kind"),
        ({"attack_indices": np.append(np.arange(3), np.arange(9))}, "does an attack|must be different"),
        ({"attack_indices": np.arange(30, 42)}, "different ones of the 40 labels"),
        ({"attack_indices": -np.arange(12)}, "different ones of the 40 labels"),
        ({"attack_indices": np.arange(11)}, "does not hold as much"),
        ({"attack_labels": np.array(["dog"] * 12)}, "not among classes"),
        ({"attack_lengths": np.array([[-1] * 4, [4, 0, 0, 0]])}, "does not hold as much"),
        ({"attack_lengths": np.array([[-1] * 4, [4, 0, 0, 0], [8, 0, 0, -1]])}, "whether it is known"),
        ({"attack_lengths": np.array([[0] * 4, [4, 0, 0, 0], [8, 0, 0, 1]])}, "does not hold as much"),
        ({"attack_lengths": np.array([4, 8])}, "must say how long"),
        ({"attack_deleted": np.array([1])}, "does not hold as much"),
        ({"attack_more": np.array([1])}, "does not hold just the arrays"),
        ({"classes": np.array(["cat", "gnu"])}, "not among classes"),
        ({"header": {"counts_correct": False}}, "all count unless labels were given"),
        ({"header": {"counts_correct": 1}}, "its header must tell"),
        ({"header": {"more": 1}}, "its header must tell"),
        ({"header": {"format": "flipcert-certificates-2"}}, "its format is"),
        ({"header": {"threat": "rain"}}, "does not know the threat 'rain'"),
        ({"header": {"threat": "sources"}}, "does not say how many there are"),
        ({"header": {"threat": "deletions"}}, "something else than deletions"),
        ({"header": {"n_labels": 10}}, "cannot be those to attack"),
        ({"header": {"n_attackable": 3}}, "different ones of the 40 labels"),
        ({"header": {"why_one_by_one": 7}}, "must be words"),
        ({"header": {"model": [1]}}, "model must map names"),
    ],
)
def test_files_that_contradict_themselves_are_refused(tmp_path, arrays, said):
    assert any(part in altered(tmp_path / "file.npz", **arrays) for part in said.split("|"))


def test_anything_else_is_refused(tmp_path):
    path = tmp_path / "file.npz"
    assert "not an npz archive" in refused(path, b"")
    assert "not an npz archive" in refused(path, b"certificate")
    assert "no header" in refused(path, archive_of({"flips.npy": npy_of(np.arange(3))}))
    np.savez(path, header=np.array([object()], object))
    assert "damaged" in refused(path, path.read_bytes())
    with pytest.raises(FileNotFoundError):
        flipcert.CollectiveCertificate.load(tmp_path / "nothing.npz")
    made_up().save(path)
    with pytest.raises(ValueError, match="is not a file of saved certificates"):
        flipcert.Certificates.load(path)


def test_no_damage_leads_to_anything_but_a_sentence(tmp_path):
    path = tmp_path / "file.npz"
    made_up(threat="sources").save(path)
    content = path.read_bytes()
    for _, damaged in zip(range(300), corruptions(content, seed=1), strict=False):
        path.write_bytes(damaged)
        try:
            loaded = flipcert.CollectiveCertificate.load(path)
        except ValueError as error:
            assert "\n" not in str(error)  # noqa: PT017
            continue
        assert np.all(loaded.changed_at_least <= loaded.changed_at_most)
        assert np.all(loaded.changed_at_most <= loaded.changed_one_by_one)
        assert [loaded.changed(k).size for k in range(len(loaded))] == loaded.changed_at_least.tolist()


def test_without_attacks_only_what_is_proven_is_left():
    bare = made_up().without_attacks()
    assert bare.attacks == [None, None, None]
    assert not bare.changed_at_least.any()
    assert bare.changed_at_most.tolist() == [1, 2, 5]
    assert [bare.changed(k).size for k in range(3)] == [0, 0, 0]


@pytest.mark.parametrize("threat", THREATS)
def test_it_plots_itself(threat):
    certificate = made_up(threat=threat, flips=np.array([9, 2, 4]))
    order = [2, 0, 1]
    certificate = replace(
        certificate,
        **{name: getattr(certificate, name)[order] for name in ("changed_at_most", "changed_at_least")},
        changed_one_by_one=certificate.changed_one_by_one[order],
    )
    (axes,) = certificate.plot().axes
    lines = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert lines["proven, one attack on all points"] == [[0, 11 / 12], [2, 10 / 12], [4, 9 / 12], [9, 6 / 12]]
    assert lines["proven, point by point"][-1] == [9, 2 / 12]
    assert lines["left by the attack that was found"][-1] == [9, 8 / 12]
    about = {"flips": "30 labels that are not trusted; 10 are trusted", "sources": "10 sources; 10 labels are trusted"}
    assert about.get(threat, "row" if threat != "edits" else "edits") in axes.get_xlabel()
    assert axes.get_ylabel() == "certified accuracy"
    assert made_up(counts_correct=False).plot().axes[0].get_ylabel() == "share of predictions"


def test_a_frame_has_a_row_for_each_budget():
    frame = made_up().to_frame()
    assert frame["flips"].tolist() == [2, 4, 9]
    assert frame["certified_accuracy"].tolist() == [10 / 12, 9 / 12, 6 / 12]
