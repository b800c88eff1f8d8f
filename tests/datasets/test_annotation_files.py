"""Who gave a label, and several labels a row: columns, second tables, Label Studio; one sentence for what is wrong."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from flipcert.datasets.annotations import AnnotationColumns, with_annotations
from flipcert.datasets.files import Columns, read_table

X = np.random.default_rng(0).normal(size=(6, 2))
WHO = ["Ann", "Ben", "Ann", "Cyd", "Ben", "7"]


def frame(**columns):
    return pd.DataFrame(X, columns=["a", "b"]).assign(**columns)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels = ["x", "y"] * 3
    frame(label=labels, who=WHO).to_csv("train.csv", index=False)
    frame(label=labels, who=WHO).to_parquet("train.parquet")
    np.savez("train.npz", X=X, y=labels, who=WHO)
    frame(name=list("uvwxyz")).to_csv("rows.csv", index=False)
    np.save("X.npy", X)
    return tmp_path


@pytest.mark.parametrize("name", ["train.csv", "train.parquet", "train.npz"])
def test_sources_of_all_formats(folder, name):
    table = read_table(name, Columns(giver="who"), labelled=True)
    assert table.givers.tolist() == WHO
    assert table.X.shape == (6, 2)


def test_sources_of_shards(folder):
    (folder / "shards").mkdir()
    for i in range(2):
        frame(label=["x", "y"] * 3, who=WHO).to_parquet(folder / "shards" / f"{i}.parquet")
    assert read_table("shards", Columns(giver="who"), labelled=True).givers.tolist() == WHO * 2


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("missing", [None, float("nan"), ""])
def test_a_label_without_a_source_is_refused(folder, ending, missing):
    for who in ([*WHO[:3], missing, *WHO[4:]], [1.0, 2.0, 1.0, None if missing == "" else missing, 1.0, 1.0]):
        table = frame(label=["x", "y"] * 3, who=who)
        getattr(table, f"to_{ending}")(f"bad.{ending}", index=False)
        with pytest.raises(ValueError, match=rf"bad\.{ending} has no source in row 3; give labels of unknown origin"):
            read_table(f"bad.{ending}", Columns(giver="who"), labelled=True)


def test_sources_that_are_none(folder):
    with pytest.raises(ValueError, match=r"train\.csv has no column 'him'; it has 'a', 'b'"):
        read_table("train.csv", Columns(giver="him"), labelled=True)
    with pytest.raises(ValueError, match=r"train\.npz has no array 'him' of sources; it holds X, y, who"):
        read_table("train.npz", Columns(giver="him"), labelled=True)
    with pytest.raises(ValueError, match="--source label is the column of the labels"):
        read_table("train.csv", Columns(giver="label"), labelled=True)
    np.save("y.npy", np.arange(6) % 2)
    with pytest.raises(ValueError, match=r"cannot say who gave its labels; put the data into one \.npz file"):
        read_table("X.npy,y.npy", Columns(giver="who"), labelled=True)
    np.savez("bad.npz", X=X, y=np.arange(6) % 2, who=[1.0, np.nan, 1, 1, 1, 1], short=[1, 2])
    with pytest.raises(ValueError, match="no source in row 1"):
        read_table("bad.npz", Columns(giver="who"), labelled=True)
    with pytest.raises(ValueError, match=r"6 rows, but a column of sources of shape \(2,\)"):
        read_table("bad.npz", Columns(giver="short"), labelled=True)


def write(name, lines, columns=("name", "label", "annotator")):
    table = pd.DataFrame(lines, columns=columns)
    table.to_csv(f"{name}.csv", index=False)
    table.to_parquet(f"{name}.parquet")
    return f"{name}.csv"


LINES = [("v", "cat", 1), ("u", "dog", 2), ("u", "cat", 1), *((own, "dog", 3) for own in "wxyz")]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_second_table_is_joined_by_ids(folder, ending):
    write("labels", LINES)
    rows = read_table("rows.csv", Columns(id="name"), labelled=False)
    table = with_annotations(rows, f"labels.{ending}", AnnotationColumns(id="name"))
    assert table.rows.tolist() == [1, 0, 0, 2, 3, 4, 5]
    assert table.y.tolist() == [label for _, label, _ in LINES]
    assert [str(own) for own in table.givers] == ["1", "2", "1", "3", "3", "3", "3"]
    assert table.trusted is None
    assert table.n_labels == 7
    assert table.X.shape == (6, 2)


def test_a_second_table_is_joined_by_row_numbers(folder):
    write("labels", [(i % 6, i, f"w{i}", i == 3) for i in range(8)], ("row", "class", "who", "gold"))
    table = with_annotations(
        read_table("X.npy", Columns(), labelled=False),
        "labels.csv",
        AnnotationColumns(label="class", giver="who", trusted="gold"),
    )
    assert table.rows.tolist() == [0, 1, 2, 3, 4, 5, 0, 1]
    assert table.y.tolist() == list(range(8))
    assert table.trusted.tolist() == [i == 3 for i in range(8)]


@pytest.mark.parametrize(
    ("lines", "columns", "named", "said"),
    [
        (LINES[:-1], None, {}, r"row 5 of rows\.csv \('z'\) has no annotation in labels\.csv"),
        ([*LINES, ("q", "cat", 1)], None, {}, r"labels\.csv has an annotation of 'q', which is no id of rows\.csv"),
        ([*LINES, ("u", None, 1)], None, {}, r"labels\.csv has no label in row 7"),
        ([*LINES, ("u", "cat", None)], None, {}, r"labels\.csv has no source in row 7; give labels of unknown origin"),
        ([*LINES, (None, "cat", 1)], None, {}, r"labels\.csv has no id in row 7"),
        ([], None, {}, r"labels\.csv has no annotations"),
        (LINES, ("name", "class", "annotator"), {}, r"labels\.csv has no column 'label'; name it with --label"),
        (LINES, None, {"giver": "who"}, r"labels\.csv has no column 'who'; name it with --source"),
        (LINES, None, {"giver": "label"}, "--label and --source both name the column 'label'"),
        (
            LINES,
            ("name", "label", "x"),
            {"trusted": "x"},
            "column 'x' of labels.csv must hold true or false; row 1 has 2",
        ),
        (LINES, ("id", "label", "annotator"), {}, "has no column 'name'; name it with --id"),
        ([(*line, 1) for line in LINES], ("name", "label", "annotator", "source"), {}, "say with --source which"),
        (LINES, ("name", "label", "x"), {"cap": 9}, "--cap 9 weighs labels by their source, and labels.csv does not"),
    ],
    ids=lambda own: own if isinstance(own, str) else "",
)
def test_what_is_wrong_with_a_second_table(folder, lines, columns, named, said):
    write("labels", lines, columns or ("name", "label", "annotator"))
    rows = read_table("rows.csv", Columns(id="name"), labelled=False)
    with pytest.raises(ValueError, match=said):
        with_annotations(rows, "labels.csv", AnnotationColumns(id="name", **named))


@pytest.mark.parametrize("row", ["6", "-1", "one", "1.5", str(10**30)])
def test_row_numbers_that_are_none(folder, row):
    write("labels", [*((str(i), "x") for i in range(6)), (row, "y")], ("row", "label"))
    with pytest.raises(ValueError, match=r"X\.npy has rows 0 to 5; count rows from 0, or join both files with --id"):
        with_annotations(read_table("X.npy", labelled=False), "labels.csv", AnnotationColumns())


def test_ids_that_are_there_twice(folder):
    frame(name=list("uvwxyu")).to_csv("twice.csv", index=False)
    write("labels", LINES)
    with pytest.raises(ValueError, match=r"twice\.csv has the id 'u' in rows 0 and 5"):
        with_annotations(
            read_table("twice.csv", Columns(id="name"), labelled=False), "labels.csv", AnnotationColumns(id="name")
        )


def test_files_of_no_kind(folder):
    rows = read_table("X.npy", labelled=False)
    for name, said in (
        ("nowhere.csv", "does not exist; give the path of a file with annotations"),
        ("labels.xml", "does not exist"),
        (".", "is a directory|not known"),
    ):
        with pytest.raises(ValueError, match=said):
            with_annotations(rows, name, AnnotationColumns())
    (folder / "labels.xml").write_text("<a/>")
    with pytest.raises(ValueError, match=r"has an ending that is not known; use \.csv, \.tsv, \.parquet, or \.json"):
        with_annotations(rows, "labels.xml", AnnotationColumns())
    for name in ("labels.parquet", "labels.json", "labels.csv"):
        (folder / name).write_bytes(b"\xff\xfe\x00garbage")
        with pytest.raises(ValueError, match=rf"--annotations {name} cannot be read: "):
            with_annotations(rows, name, AnnotationColumns())


def task(i, *given, data=None, **more):
    """A task of Label Studio: pairs of who and what."""
    annotations = [
        {"completed_by": who, "ground_truth": False, "was_cancelled": False, "result": [choice(what)]}
        for who, what in given
    ]
    return {"id": i, "data": data or {"text": f"t{i}"}, "annotations": annotations, "predictions": [{}], **more}


def choice(what, control="kind"):
    return {"type": "choices", "from_name": control, "to_name": "text", "value": {"choices": [what]}}


def studio(tasks, n_rows=6, **columns):
    with open("tasks.json", "w") as file:
        json.dump(tasks, file)
    ids = None if "id" not in columns else np.array([f"t{i}" for i in range(n_rows)])
    rows = read_table("X.npy", labelled=False)
    return with_annotations(replace(rows, X=rows.X[:n_rows], ids=ids), "tasks.json", AnnotationColumns(**columns))


def tasks():
    return [task(i, (1, "cat"), (2 + i % 2, "dog" if i % 3 else "cat")) for i in range(6)]


def test_label_studio_in_order(folder):
    given = tasks()
    given[2]["annotations"][1]["ground_truth"] = True
    given[3]["annotations"].append({"completed_by": 9, "was_cancelled": True, "result": []})
    given[4]["annotations"][0]["completed_by"] = {"id": 4, "email": "d@example.org"}
    table = studio(given)
    assert table.rows.tolist() == [i // 2 for i in range(12)]
    assert table.y.tolist() == ["cat", "cat", "cat", "dog", "cat", "dog"] * 2
    assert table.givers.tolist() == ["1", "2", "1", "3", "1", "2", "1", "3", "d@example.org", "2", "1", "3"]
    assert table.trusted.tolist() == [k == 5 for k in range(12)]


def test_label_studio_by_ids(folder):
    shuffled = [task(90 - i, (1, "7"), data={"key": f"t{i}"}) for i in (3, 0, 5, 1, 2, 4)]
    table = studio(shuffled, id="key")
    assert table.rows.tolist() == [3, 0, 5, 1, 2, 4]
    assert table.y.tolist() == [7] * 6
    numbered = [task(f"t{i}", (1, "7")) for i in range(6)]
    assert studio(numbered, id="id").rows.tolist() == list(range(6))


def test_label_studio_with_several_controls(folder):
    given = tasks()
    for own in given:
        for annotation in own["annotations"]:
            annotation["result"].append(choice("sure", "confidence"))
            annotation["result"].append({"type": "textarea", "value": {"text": ["why"]}})
    with pytest.raises(ValueError, match="several controls, 'kind', 'confidence'; name one with --label, and call"):
        studio(given)
    assert set(studio(given, label="kind").y.tolist()) == {"cat", "dog"}


def test_one_person_of_label_studio_is_one_source(folder):
    """A number in some annotations, a record in others; the first address that is seen is the name."""
    given = tasks()
    for place, by in ((2, {"id": 1, "email": "a@example.org"}), (4, {"id": 1, "email": "b@example.org"}), (5, "1")):
        given[place]["annotations"][0]["completed_by"] = by
    given[3]["annotations"][0]["completed_by"] = {"id": 3, "email": ""}
    givers = studio(given).givers.tolist()
    assert givers[::2] == ["a@example.org"] * 3 + ["3"] + ["a@example.org"] * 2
    assert givers[1::2] == ["2", "3"] * 3


def broken(change):
    given = tasks()
    change(given)
    return given


@pytest.mark.parametrize(
    ("given", "columns", "said"),
    [
        ({"id": 1}, {}, "must be a list of tasks"),
        ([{"id": 1, "text": "t", "kind": "cat", "annotator": 1}], {}, "It looks like JSON-MIN: export as JSON"),
        (tasks()[:5], {}, r"the 5 tasks of tasks\.json cannot be taken as rows in their order, for there are 6"),
        (tasks()[::-1], {}, "for their ids do not rise; name the field"),
        (tasks(), {"id": "key"}, r"have no field 'key' in their data; they have 'text'"),
        (broken(lambda t: t[2]["data"].pop("text")), {"id": "text"}, "the data of task 2 .* has no field 'text'"),
        (
            broken(lambda t: t[2]["data"].update(text="t1")),
            {"id": "text"},
            "two tasks of tasks.json have the 'text' 't1'",
        ),
        (broken(lambda t: t[2]["data"].update(text=[1])), {"id": "text"}, "must be text or a whole number"),
        (
            broken(lambda t: t[1]["annotations"][0].update(result=[])),
            {},
            "task 1 .* has an annotation without a choice",
        ),
        (
            broken(lambda t: t[1]["annotations"][0]["result"][0]["value"].update(choices=["a", "b"])),
            {},
            "another number of choices than one",
        ),
        (broken(lambda t: t[1]["annotations"][0].pop("completed_by")), {}, "whose completed_by is None"),
        (broken(lambda t: t[1]["annotations"][0].update(ground_truth="yes")), {}, "ground_truth of task 1"),
        (
            broken(lambda t: t[1]["annotations"][0].update(was_cancelled="false")),
            {},
            "was_cancelled of task 1 .* 'false'",
        ),
        (broken(lambda t: t[1]["annotations"][0].update(completed_by={"id": []})), {}, "whose completed_by is {'id'"),
        (broken(lambda t: t[1]["annotations"][0].update(completed_by={"id": ""})), {}, "whose completed_by is {'id'"),
        (tasks(), {"giver": "who"}, "--source who does not apply to tasks.json: .* completed_by says who"),
        (tasks(), {"trusted": "gold"}, "--trusted gold does not apply to tasks.json: .* ground_truth says which"),
        ([], {"id": "text"}, "tasks.json has no tasks; it must hold at least one"),
        ([{"data": {}, "annotations": []}], {"id": "text"}, "no field 'text' in their data; they have none"),
        (broken(lambda t: t[1]["annotations"].append(7)), {}, "has an annotation that is none: 7"),
        (broken(lambda t: t[1].update(annotations=[])), {}, "row 1 of X.npy has no annotation in tasks.json"),
        ([task(i) for i in range(6)], {}, "tasks.json has no annotations"),
    ],
    ids=lambda own: own if isinstance(own, str) else "",
)
def test_what_is_wrong_with_an_export(folder, given, columns, said):
    with pytest.raises(ValueError, match=said):
        studio(given, **columns)


def test_an_export_that_nests_too_deep(folder):
    (folder / "tasks.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match=r"--annotations tasks\.json cannot be read: it is no JSON"):
        with_annotations(read_table("X.npy", labelled=False), "tasks.json", AnnotationColumns())


def test_an_export_larger_than_memory(folder, monkeypatch):
    monkeypatch.setattr("flipcert.datasets.room.available_memory", lambda: 1000)
    with pytest.raises(ValueError, match=r"tasks\.json needs at least .* export fewer tasks at a time"):
        studio(tasks())
