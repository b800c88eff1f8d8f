"""The panel about labels to check: what checking proves, why each label is there, and what the list is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import flipcert
from flipcert.report import report_page
from flipcert.report.audit_result import Audit, AuditEntry
from flipcert.report.audit_words import evidence, finding, reason
from tests.helpers.pages import Page
from tests.helpers.results import NASTY, digits, real_result


def entry(**known):
    given = {"index": 4, "row": 4, "id": None, "label": 3, "source": None, "weighs_on": None, "margin": -1.0}
    return AuditEntry(**(given | {"preferred": 5, "n_labels": 1, "n_suspects": 0} | known))


def audited(names=None, labelled=True, count=12, flips=5, entries=None, **known):
    """Digits with an audit."""
    model = flipcert.KernelRidge(reg=10.0)
    result = real_result(model, names=names, labelled=labelled, images=True)
    _, y_train, X_test, y_test = digits(names)
    y = y_test if labelled else None
    plan = flipcert.plan_audit(model, X_test, count, flips=flips, y=y, held_out=True)
    entries = entries or tuple(
        entry(
            index=i, row=i, label=y_train[i].item(), weighs_on=own, margin=0.1 * (-1) ** i, preferred=y_train[0].item()
        )
        for i, own in zip(plan.indices.tolist(), plan.weighs_on.tolist(), strict=True)
    )
    return replace(result, audit=Audit(plan, replace(plan, held_out=None, random=None), entries, 7, **known))


def test_the_panel_says_what_is_proven_and_what_it_is_not():
    result = audited()
    source = report_page([result])
    text = Page(source).text
    assert f"{finding(result.audit)}." in text
    plan = result.audit.plan
    before, after = round(80 * plan.certified[0]), round(80 * plan.certified[-1])
    assert (
        f"raises the predictions that are correct and proven against 5 flips from {before} to {after} of 80, if they "
        "turn out right."
    ) in text
    for part in ("Which labels to check first", "random checks", "the list", "What this is not", "begins at"):
        assert part in text
    assert "A label can matter without being wrong" in text
    assert "A check of chosen labels proves nothing about labels that were not checked" in text
    assert source.index('id="audit-0"') < source.index('id="curve-0"')
    assert report_page([audited()]) == source
    assert "audit-" not in report_page([replace(result, audit=None)]).split("</style>")[1]


def test_words_follow_what_is_known():
    unlabelled = audited(labelled=False)
    assert "correct" not in f"{finding(unlabelled.audit)} {' '.join(evidence(unlabelled.audit))}"
    again = audited(n_corrected=1, n_confirmed=2).audit
    said = " ".join(evidence(again))
    assert "after the checks so far" in said
    assert "Checked before: 3 labels, of which 1 was wrong and corrected; all of them are trusted now." in said
    same = replace(again.listed, certified=np.full(13, again.plan.certified[0]))
    assert "proves no more than before" in str(finding(replace(again, listed=same)))
    best = replace(again.plan, held_out=again.plan.certified)
    # Nothing is said of others that this plan does not show.
    assert "others less" not in " ".join(evidence(replace(again, plan=best)))


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"weighs_on": 1}, "weighs on 1 prediction not proven yet"),
        ({"weighs_on": 57}, "weighs on 57 predictions not proven yet"),
        ({"margin": 0.5}, "looks wrong: without it, the model says 5"),
        ({"weighs_on": 2, "margin": 0.5}, "weighs on 2 predictions not proven yet; looks wrong: without it, the model"),
        (
            {"margin": 0.5, "by_folds": True},
            "wrong: without it and the rest of its fold (cross-validation), the model says 5",
        ),
        ({"weighs_on": 0}, "no proof hangs on it; it fills the list"),
        ({"row": None, "n_labels": 9, "n_suspects": 0, "margin": -0.1}, "none of its 9 labels looks wrong"),
        ({"row": None, "n_labels": 9, "n_suspects": 1, "margin": 0.1}, "1 of its 9 labels looks wrong"),
        ({"row": None, "n_labels": 9, "n_suspects": 2, "margin": 0.1}, "2 of its 9 labels look wrong"),
        ({"row": None, "n_labels": 1, "n_suspects": 1, "weighs_on": 3}, "; its only label looks wrong"),
    ],
)
def test_every_label_has_its_reason(known, said):
    assert said in reason(entry(**known))


def test_one_label_and_one_point_are_spoken_of_as_such():
    audit = audited(count=1).audit
    one = replace(audit.listed, certified=np.array([0.5, 0.6]))
    assert str(finding(replace(audit, listed=one))).endswith("from 40 to 48 of 80, if it turns out right")
    alone = " ".join(evidence(replace(audit, plan=replace(audit.plan, held_out=None))))
    assert "Random checks take it to" in alone
    assert "half" not in alone


def test_names_from_outside_are_data():
    result = audited(names=NASTY)
    ids = tuple(replace(own, id=NASTY[k % len(NASTY)].item()) for k, own in enumerate(result.audit.entries))
    source = report_page([replace(result, audit=replace(result.audit, entries=ids))])
    assert "<script>document" not in source
    assert "<img src=x" not in source


def test_long_lists_are_cut_on_the_page():
    many = tuple(entry(index=k, row=k) for k in range(130))
    assert "and 30 more in audit.csv" in Page(report_page([audited(entries=many)])).text


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_curves_that_never_move_are_drawn(share):
    result = audited()
    flat = np.full(13, share)
    plan = replace(result.audit.plan, certified=flat, held_out=flat, random=flat)
    listed = replace(result.audit.listed, certified=flat)
    text = Page(report_page([replace(result, audit=replace(result.audit, plan=plan, listed=listed))])).text
    assert "proves no more than before" in text
    assert "nan" not in text.lower().split()
    assert "All curves coincide." in text
    other = replace(plan, random=np.linspace(0, 1, 13), held_out=np.linspace(0, 0.5, 13))
    text = Page(report_page([replace(result, audit=replace(result.audit, plan=other, listed=listed))])).text
    assert "These curves coincide: “planned for these points” and “the list”." in text
