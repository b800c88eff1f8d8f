"""The label space: a user's labels as class indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets

from flipcert.engine.words import plural
from flipcert.labels.steps import final_step


def encode_labels(y: NDArray[Any], classes: ArrayLike | None) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Sorted classes and the class index of each label; ``classes`` may name classes that no sample has."""
    if classes is None or not _are_names(y):
        _check_targets(y, "y")
    if classes is None:
        present = np.unique(y)
        if present.size < 2:
            raise ValueError(
                f"y has one class only ({present.tolist()[0]!r}); a prediction could not change. "
                "Name the whole label space with classes=[...]."
            )
        return present, np.searchsorted(present, y)
    space = label_space(classes)
    # What an attacker may write has to be what can be fitted.
    if not _are_names(space):
        _check_targets(space, "classes")
    return space, class_indices(y, space, "y holds the label {label}, which classes={classes} does not name.")


def _are_names(labels: NDArray[Any]) -> bool:
    """Whether these are strings or whole numbers by their type: nothing to refuse, and nothing to warn of if named."""
    return labels.ndim == 1 and labels.dtype.kind in "biuU"


def _check_targets(labels: NDArray[Any], name: str) -> None:
    """Refuse what are no labels of classes, such as fractions."""
    try:
        check_classification_targets(labels)
        np.unique(labels)
    except (ValueError, TypeError) as error:
        some = ", ".join(map(repr, labels[:3].tolist()))
        reason = str(error).split(". ")[0]
        raise ValueError(
            f"{name} must hold labels of classes, all strings or all whole numbers; got such as {some} ({reason})."
        ) from error


def label_space(classes: ArrayLike) -> NDArray[Any]:
    """The classes that a user names, sorted; they are a set of at least two."""
    named = np.asarray(sorted(classes) if isinstance(classes, (set, frozenset)) else classes)
    if named.ndim != 1 or (named.dtype == object and not all(isinstance(name, str) for name in named)):
        raise ValueError(f"classes must be a list of labels of one type; got {classes!r}.")
    space = np.unique(named)
    if space.size < 2:
        raise ValueError(f"classes must name at least two classes; got {named.tolist()!r}.")
    if space.dtype.kind == "f" and np.isnan(space).any():
        raise ValueError(f"classes must not hold NaN; got {named.tolist()!r}.")
    return space


def class_indices(labels: NDArray[Any], classes: NDArray[Any], complaint: str) -> NDArray[np.int64]:
    """Place of each label among the sorted classes; wherever labels are looked up, they are looked up here.

    A label that is not there is a ValueError: ``complaint``, with what was seen for ``{label}`` and ``{classes}``.
    """
    if labels.dtype.kind == classes.dtype.kind and classes.dtype.kind in "biufU":
        codes = np.minimum(np.searchsorted(classes, labels), classes.size - 1)
        missing = classes[codes] != labels
    else:
        # Labels of several types have no order, or lose digits. 1 and "1" are two labels, 1 and 1.0 are one.
        places = {label: place for place, label in enumerate(classes.tolist())}
        codes = np.array([places.get(label, -1) for label in labels.tolist()], np.int64)
        missing = codes < 0
    if missing.any():
        (label,) = labels[missing][:1].tolist()
        raise ValueError(complaint.format(label=repr(label), classes=_shortened(classes)))
    return codes


def predicted_indices(
    model: Any, X: Any, classes: NDArray[Any], remedy: str, n_rows: int | None = None
) -> NDArray[np.int64]:
    """Class indices of what a classifier, whoever wrote it, predicts for all rows, of which the first are meant."""
    name = type(final_step(model)).__name__
    predicted = np.asarray(model.predict(X))
    if predicted.shape != (X.shape[0],):
        raise ValueError(
            f"predict of {name} must return one label for each of the {plural(X.shape[0], 'row')}; got shape "
            f"{predicted.shape}."
        )
    complaint = f"{name} predicts {{label}}, which is none of the classes {{classes}}; {remedy}."
    return class_indices(predicted[:n_rows], classes, complaint)


def refuse_other_classes(estimator: Any, classes: NDArray[Any], owner: str) -> None:
    """Raise ValueError if a classifier, alone or at the end of a pipeline, names another label space than its owner."""
    own = final_step(estimator).get_params(deep=False).get("classes")
    if own is not None and label_space(own).tolist() != classes.tolist():
        name = type(final_step(estimator)).__name__
        raise ValueError(
            f"{name} has classes={_shortened(label_space(own))} of its own, but the label space of {owner} is "
            f"{_shortened(classes)}; give classes to {owner}, and none to {name}."
        )


def _shortened(classes: NDArray[Any]) -> str:
    """A list of classes as far as a sentence can hold it."""
    names = [repr(name) for name in classes[:10].tolist()]
    return f"[{', '.join(names + ['...'] * (classes.size > 10))}]"
