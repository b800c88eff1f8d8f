"""Every answer is the one that was stored (see ``tests/goldens/__init__.py`` for how to store anew)."""

from __future__ import annotations

import pytest

import flipcert
from tests.goldens.functions import certificates_to_keep
from tests.goldens.groups import GROUPS
from tests.goldens.record import STORED, columns_of, differences, header_of, outcome, read


@pytest.mark.parametrize(("group", "case"), [(group, case) for group, cases in GROUPS.items() for case in cases])
def test_answers_are_as_stored(group, case):
    assert case in read(group), "not stored yet; run: python -m tests.goldens.make"
    assert differences(read(group)[case], outcome(GROUPS[group][case])) == []


@pytest.mark.parametrize("group", GROUPS)
def test_nothing_is_stored_in_vain(group):
    assert read(group).keys() == GROUPS[group].keys()


@pytest.mark.parametrize("kept", ["strings", "all trusted", "ensemble"])
def test_certificates_of_old_files(kept):
    loaded = flipcert.Certificates.load(STORED / f"{kept.replace(' ', '-')}.npz")
    expected = certificates_to_keep()[kept]
    assert columns_of(loaded) == columns_of(expected)
    assert header_of(loaded) == header_of(expected)
