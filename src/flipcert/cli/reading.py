"""The data of a command: training and test files, annotations, labels that were checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flipcert.audit.random_check import check_confidence
from flipcert.audit.record import RandomCheck
from flipcert.cli.console import notes
from flipcert.cli.labels import label_space, labels_of_no_class
from flipcert.cli.options import CheckOptions, DataOptions
from flipcert.datasets.advice import noticed
from flipcert.datasets.annotations import AnnotationColumns, with_annotations
from flipcert.datasets.checked import CheckedLabels
from flipcert.datasets.files import Columns, columns_in, read_table
from flipcert.datasets.label_studio import is_label_studio
from flipcert.datasets.preparation import check_preparation, prepare
from flipcert.datasets.table import Table
from flipcert.runs.check import corrected, read_check


def with_check(train: Table, data: DataOptions, checking: CheckOptions) -> tuple[Table, RandomCheck]:
    """The training set, corrected by a random check, and what that proves."""
    checked, check = read_filled_in(train, data, checking)
    return corrected(train, checked, label_space(data.classes, train)), check


def read_filled_in(train: Table, data: DataOptions, checking: CheckOptions) -> tuple[CheckedLabels, RandomCheck]:
    """A random check that was filled in, and what it proves."""
    assert checking.checked is not None, "asked for with a file only"
    return read_check(
        checking.checked,
        train,
        id=data.id,
        classes=label_space(data.classes, train),
        confidence=float(check_confidence(checking.confidence, "--confidence")),
        peeked=checking.peeked,
    )


def read_tables(train: str, test: str, data: DataOptions, tell: bool = True) -> tuple[Table, Table]:
    """Training and test data, as numbers without gaps; tells what deserves a look."""
    check_preparation(data.encode, data.impute)
    drop = tuple(data.drop or ())
    # What is left out need not be in both files.
    elsewhere = columns_in(test) if drop else []
    lenient: dict[str, Any] = {"encode": data.encode is not None, "impute": data.impute is not None}
    beside = tuple(own for own in (data.trusted, data.source, data.id) if own is not None)
    # There, --label names a control of a form, and labels of other files need not be called like it.
    names_control = data.annotations is not None and is_label_studio(str(data.annotations))
    if data.annotations is not None:
        # Labels, and what is known of them, are in the other file; here they are no features.
        ignore = tuple(own for own in beside if own != data.id)
        columns = Columns(
            data.label, drop, ignore=ignore, id=data.id, or_default=names_control, elsewhere=elsewhere, **lenient
        )
        named = AnnotationColumns(data.id, data.label, data.source, data.trusted, data.cap)
        first = with_annotations(read_table(train, columns, labelled=False), data.annotations, named)
    else:
        first = read_labelled(train, data, elsewhere)
    # What is no feature of the training set need not be a column of the test set.
    columns = Columns(
        data.label,
        ignore=(*drop, *beside),
        or_default=names_control,
        id_if_there=data.id,
        texts=tuple(first.texts),
        encode=bool(first.texts),
        impute=data.impute is not None,
    )
    second = read_table(test, columns, labelled=False, n_features=first.X.shape[1]).aligned_to(first)
    first, second = first.with_labels_like(second), second.with_labels_like(first)
    if tell:
        for sentence in noticed(first):
            notes.print(f"Note: {sentence}.", soft_wrap=True, markup=False)
    first, second = prepare(first, second, data.encode, data.impute)
    foreign = labels_of_no_class(first, second, label_space(data.classes, first) or ())
    if foreign is not None and tell:
        notes.print(f"{foreign}.", soft_wrap=True, markup=False)
    return first, second


def read_labelled(train: str, data: DataOptions, elsewhere: Sequence[str] = ()) -> Table:
    """Training data that come with their labels, one a row; ``elsewhere`` are columns of the test data."""
    if data.cap is not None:
        raise ValueError("--cap is for files of --annotations; leave it out.")
    check_preparation(data.encode, data.impute)
    columns = Columns(
        data.label,
        tuple(data.drop or ()),
        trusted=data.trusted,
        giver=data.source,
        id=data.id,
        encode=data.encode is not None,
        impute=data.impute is not None,
        elsewhere=elsewhere,
    )
    return read_table(train, columns, labelled=True)
