"""The page on features says what the records say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from paper.data import load
from paper.features import page, study


def test_the_page_on_features_is_made_from_its_records():
    folder = Path(__file__).parents[1]
    records = json.loads((folder / "features.json").read_text())
    assert {record["name"] for record in records} == {job.name for job in study.JOBS}
    assert page.page(records) == (folder / "features.md").read_text()


def test_the_linear_probe_finds_what_is_there_and_nothing_else():
    digits = load("digits")
    assert study.probe(digits.train, digits.test) > 0.9
    shuffled = replace(digits.train, y=np.random.default_rng(0).permutation(digits.train.y))
    assert study.probe(shuffled, digits.test) < 0.25
