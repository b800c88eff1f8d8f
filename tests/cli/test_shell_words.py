"""What the command line says: words of the shell, not those of the library."""

from __future__ import annotations

import re

import numpy as np
import pytest

from flipcert.cli.shell_words import in_shell_words
from tests.helpers.command_line import X_TRAIN, Y_TRAIN, refused

# Arguments of Python, and values that a shell has not.
LIBRARY = re.compile(
    r"\b(n_\w+|C_max_|\w+_std|\w+_size|\w+_rate|\w+_limit|random_state|flip_probability|max_flips|image_shape|None|"
    r"PartitionEnsemble|kernel object)\b|\b(reg|gamma|C|clip|method|classes|weights|partition|pooling)=|\bX\b(?!\.npy)"
)
COMMANDS = [
    ("sweep dup.npz test.npz -n 10,20", "partition 3 of --partitions 10 would be empty"),
    ("certify dup.npz test.npz -n 4", "of --partitions 4 would be empty under 'sorted', which keeps identical rows"),
    ("attack train.npz test.npz -r 0 -n 100", "--partitions must be a whole number from 1 to the number of rows"),
    ("sweep train.npz test.npz -m ridge -n 1,3 --reg 1e300", "--reg 1e+300 is too large .* take a smaller --reg, or"),
    ("certify train.npz test.npz -k rbf --gamma 1e300", "--gamma 1e+300 times the squared .* take a smaller --gamma"),
    (
        "certify train.npz test.npz --C 5",
        "--C 5 is above the small-C threshold 0.000.*; leave --C out, or take a smaller",
    ),
    ("certify train.npz test.npz --C 5 -n 3", "partition . could not be fitted: --C 5 is above"),
    ("certify train.npz test.npz --weight-std 1e200", "--weight-std must not be so large"),
    (
        "certify train.npz test.npz -m neighbors --neighbors 30 -n 5",
        "fitted: --neighbors 30 is more than .*; use fewer.",
    ),
    (
        "certify train.npz test.npz -m neighbors --neighbor-weights x",
        '--neighbor-weights must be "uniform" or "distance"',
    ),
    ("certify train.npz test.npz -m spreading --alpha 1", "--alpha must be a number above 0 and below 1; got 1.0"),
    (
        "certify train.npz test.npz -m spreading --alpha 0.999999999999",
        "--alpha 0.999999999999 is so close .*; take a smaller --alpha.",
    ),
    (
        "certify train.npz test.npz -m spreading -t deletions",
        "--threat deletions is refused by LabelSpreading: the graph of neighbours changes",
    ),
    ("certify train.npz test.npz -m ridge -k rbf --gamma 1e-9 --reg 1e-300", "plus --reg 1e-300 .*: raise --reg."),
    ("certify train.npz test.npz -m smoothed --flip-probability 0.9", "read from the labels and --method white-box"),
    (
        "certify train.npz test.npz -m network --batch-size 1000",
        "--batch-size must be at most 75, the number of samples;",
    ),
    (
        "certify train.npz test.npz -m network --loss squared --learning-rate 1e300",
        "lower --learning-rate, .* with --clip",
    ),
    ("certify train.npz test.npz -m milp-svm --C 1e300", "The SVM with --C 1e+300 was not solved .* smaller --C"),
    (
        "certify train.npz test.npz -k conv-ntk --image-shape 2,2 --pooling max",
        '--pooling must be left out, or "average"',
    ),
    (
        "attack train.npz test.npz -r 0 -k conv-ntk --image-shape 2,3",
        "rows of 4 numbers, but --image-shape 1,2,3 needs",
    ),
    ("certify huge.npz huge.npz --activation relu", "The features must hold finite numbers whose squares fit float64"),
]


@pytest.mark.parametrize(("command", "told"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_arguments_are_options(command, told, data):
    np.savez("dup.npz", X=np.repeat(X_TRAIN[:3], 25, axis=0), y=Y_TRAIN)
    np.savez("huge.npz", X=X_TRAIN * 1e200, y=Y_TRAIN)
    said = refused(*command.split(), "--quiet")
    assert re.search(told.replace("+", r"\+"), said), said
    assert not LIBRARY.search(said), said


def test_names_of_files_and_columns_stay_what_they_are(data):
    """A file may be called like an argument."""
    for name in ("reg=0.1.csv", "n_jobs.csv", "C=5.npz"):
        assert f"Error: {name} does not exist" in refused("certify", name, "test.csv", "--quiet")
    with open("gamma=1.csv", "w") as file:
        file.write("n_partitions,weight_std,label\n1,2,a\n3,x,b\n")
    said = refused("certify", "gamma=1.csv", "test.csv", "--quiet")
    assert "column 'weight_std' of gamma=1.csv holds string" in said.lower()


def test_words_that_are_no_arguments_stay():
    for text in (
        "the kernel of the training set must be symmetric.",
        "the weights of a row overflowed (got inf): products of the inputs are too large.",
        "runs/reg=1/train.npz cannot be read; see 'n_jobs' and n_jobs.py, or my-gamma=2.",
        "labels of two classes, one method, some weights with or without depth.",
    ):
        assert in_shell_words(text) == text
