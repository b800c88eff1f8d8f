"""Annotations as Label Studio exports them (JSON): single-choice classifications, with who completed each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from flipcert.datasets.room import Unreadable, check_room
from flipcert.datasets.spelling import labels_of_text
from flipcert.datasets.tasks import Given, some

# Bytes of memory for a byte of the file: Python's objects are larger than their text.
_GROWTH = 12


class _Choice(NamedTuple):
    """A choice that somebody made: for which task, in which control of the form."""

    task: int
    control: str
    label: str
    giver: _Giver
    trusted: bool


class _Giver(NamedTuple):
    """Who completed an annotation: a number, an address, or both."""

    number: str | None
    address: str | None


def is_label_studio(name: str) -> bool:
    """Whether this is the name of such a file."""
    return name.lower().endswith(".json")


def read_label_studio(name: str, id_field: str | None, control: str | None, n_rows: int) -> Given:
    """Read an export of Label Studio.

    Parameters
    ----------
    name : str
        The file.
    id_field : str or None
        Field of a task's data that is the id of its row, or "id" for the number that Label Studio gave the task, if
        data have no such field. Without it tasks are rows in the order of the file.
    control : str or None
        Which control of the form holds the labels, if there are several.
    n_rows : int
        Number of training rows.
    """
    tasks = _tasks(name)
    ids = _ids(name, tasks, id_field, n_rows)
    choices = [choice for place, task in enumerate(tasks) for choice in _choices(name, task, place)]
    if not choices:
        raise ValueError(f"{name} has no annotations; it must hold at least one.")
    controls = list(dict.fromkeys(choice.control for choice in choices))
    if len(controls) > 1:
        if control not in controls:
            raise ValueError(
                f"{name} has choices of several controls, {some(controls)}; name one with --label, "
                "and call the labels of the test file the same, or 'label'."
            )
        choices = [choice for choice in choices if choice.control == control]
    return Given(
        source=name,
        id=np.array([ids[choice.task] for choice in choices]),
        label=labels_of_text(np.array([choice.label for choice in choices]), name),
        giver=np.array(_called([choice.giver for choice in choices])),
        trusted=np.array([choice.trusted for choice in choices], np.bool_),
        by_number=id_field is None,
        spelled=True,
    ).checked()


def _tasks(name: str) -> list[dict[str, Any]]:
    """The tasks of a file, whatever they hold."""
    check_room(name, _GROWTH * os.path.getsize(name), "export fewer tasks at a time")
    with open(name, "rb") as file:
        text = file.read()
    try:
        tasks = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is no JSON ({Unreadable(error)})") from error
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise ValueError(f"{name} must be a list of tasks, as Label Studio exports them (JSON).")
    if not tasks:
        raise ValueError(f"{name} has no tasks; it must hold at least one.")
    for place, task in enumerate(tasks):
        if not isinstance(task.get("annotations"), list) or not isinstance(task.get("data"), dict):
            kind = " It looks like JSON-MIN: export as JSON." if "annotator" in task or "lead_time" in task else ""
            raise ValueError(f"task {place} of {name} must have data and a list of annotations.{kind}")
    return tasks


def _ids(name: str, tasks: list[dict[str, Any]], field: str | None, n_rows: int) -> list[str]:
    """What each task is called."""
    if field is None:
        numbers: list[Any] = [task.get("id") for task in tasks]
        ordered = all(type(own) is int for own in numbers) and all(
            before < after for before, after in pairwise(numbers)
        )
        if len(tasks) != n_rows or not ordered:
            why = "their ids do not rise" if len(tasks) == n_rows else f"there are {n_rows} training rows"
            raise ValueError(
                f"the {len(tasks)} tasks of {name} cannot be taken as rows in their order, for {why}; name the field "
                "of their data that the training file has too with --id."
            )
        return [str(place) for place in range(len(tasks))]
    holders = [field in task["data"] for task in tasks]
    if any(holders) and not all(holders):
        raise ValueError(f"the data of task {holders.index(False)} of {name} has no field {field!r}, as others have.")
    if not any(holders) and field != "id":
        fields = list(dict.fromkeys(own for task in tasks for own in task["data"]))
        raise ValueError(
            f"the tasks of {name} have no field {field!r} in their data; they have {some(fields) or 'none'}."
        )
    ids = [task["data"][field] if any(holders) else task.get("id") for task in tasks]
    for place, own in enumerate(ids):
        if type(own) not in (str, int):
            raise ValueError(
                f"the {field!r} of task {place} of {name} must be text or a whole number; got {some([own])}."
            )
    texts = [str(own) for own in ids]
    if len(set(texts)) < len(texts):
        own = next(text for place, text in enumerate(texts) if text in texts[:place])
        raise ValueError(f"two tasks of {name} have the {field!r} {own!r}; each must be there once.")
    return texts


def _choices(name: str, task: dict[str, Any], place: int) -> Iterator[_Choice]:
    """What was chosen for a task, by everybody who completed it. Whoever skipped it said nothing."""
    for annotation in task["annotations"]:
        if not isinstance(annotation, dict):
            raise ValueError(f"task {place} of {name} has an annotation that is none: {some([annotation])}.")
        if _flag(name, annotation, place, "was_cancelled"):
            continue
        results = annotation.get("result")
        made = [
            own for own in results if isinstance(own, dict) and own.get("type") == "choices"
        ] if isinstance(results, list) else []  # fmt: skip
        if not made:
            raise ValueError(
                f"task {place} of {name} has an annotation without a choice; labels must be single-choice "
                "classifications (Choices), so remove it or mark it as skipped."
            )
        giver, trusted = _giver(name, annotation, place), _flag(name, annotation, place, "ground_truth")
        seen = set()
        for own in made:
            control, value = str(own.get("from_name", "")), own.get("value")
            labels = value.get("choices") if isinstance(value, dict) else None
            if not isinstance(labels, list) or len(labels) != 1 or not isinstance(labels[0], str) or control in seen:
                raise ValueError(
                    f"task {place} of {name} has an annotation with another number of choices than one; only "
                    "single-choice classifications can be labels."
                )
            seen.add(control)
            yield _Choice(place, control, labels[0], giver, trusted)


def _flag(name: str, annotation: dict[str, Any], place: int, field: str) -> bool:
    """A field of an annotation that is true, or false, or left out."""
    flag = annotation.get(field, False)
    if not isinstance(flag, bool):
        raise ValueError(f"the {field} of task {place} of {name} must be true or false; got {some([flag])}.")
    return flag


def _giver(name: str, annotation: dict[str, Any], place: int) -> _Giver:
    """Who completed an annotation: a number, or a record with an address or a number."""
    by = annotation.get("completed_by")
    number, address = (by.get("id"), by.get("email")) if isinstance(by, dict) else (by, None)
    for own in (number, address):
        if not (type(own) in (str, int) or own is None):
            raise ValueError(_nobody(name, by, place))
    if number in (None, "") and address in (None, ""):
        raise ValueError(_nobody(name, by, place))
    return _Giver(*(None if own in (None, "") else str(own) for own in (number, address)))


def _nobody(name: str, by: object, place: int) -> str:
    return (
        f"task {place} of {name} has an annotation whose completed_by is {some([by])}; it must say who gave the label."
    )


def _called(givers: list[_Giver]) -> list[str]:
    """What everybody is called: by the first address that comes with a number, or else by the number.

    One person may be a number in one annotation and a record with an address in another. An address that two numbers
    share makes them one source.
    """
    addresses: dict[str, str] = {}
    for giver in givers:
        if giver.number is not None and giver.address is not None:
            addresses.setdefault(giver.number, giver.address)
    return [
        str(giver.address) if giver.number is None else addresses.get(giver.number, giver.number) for giver in givers
    ]
