"""Every sentence, axis and column follows the threat: nothing that counts one thing can be read as another."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import flipcert
from flipcert import plots
from flipcert.cli.tables import print_comparison
from flipcert.labels.threats import THREATS
from flipcert.report import report_page
from flipcert.report.attack_parts import inputs_told, parts_of
from flipcert.report.cohorts import cohorts
from flipcert.report.key_figures import summarise
from flipcert.report.result import Attack, Result, SourcePower
from flipcert.report.units import unit_of
from tests.helpers.pages import Page
from tests.helpers.results import NASTY, made_up, some_trusted, under

OTHERS = [name for name in THREATS if name != "flips"]
# What is said of flips where it is about something else: what is not covered, what a replacement is, what edits are.
ASIDE = (
    "Flipped labels",
    "a flipped label is one such replacement",
    "An edit flips one label",
    "Attackers may flip labels",
    "an attacker flips, deletes and adds",
    "Whichever labels are flipped",
    "neither flip nor delete",
)


def said_by(results):
    """Text of a page, with all that a pointer or a screen reader finds."""
    page = Page(report_page(results))
    spoken = ("title", "aria-label", "content", "aria-valuetext", "data-curves")
    return f"{page.text} {' '.join(own[name] for _, own in page.tags for name in spoken if own.get(name))}"


@pytest.mark.parametrize("trusted", [0, 1000])
@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("threat", OTHERS)
def test_no_sentence_of_a_page_speaks_of_flips(threat, labelled, trusted):
    result = under(made_up(beyond=0.1), threat)
    result = replace(result, in_flips=None, labels=result.labels if labelled else None)
    if trusted:
        result = replace(result, certificates=replace(result.certificates, n_attackable=5000 - trusted))
    said = said_by([result])
    for own in ASIDE:
        said = said.replace(own, "")
    assert not re.findall(r"[^.]{0,60}\bflip(?!cert).{0,40}", said)
    unit = unit_of(threat)
    assert unit.all_made in said
    assert f"{unit.nouns} proven to be withstood" in said
    assert f"threat{threat}" in said.replace(" ", "")


@pytest.mark.parametrize(
    ("threat", "told"),
    [
        ("sources", "withstand 3 corrupt sources, 7.5 % of the 40 sources."),
        ("deletions", "withstand 66 deleted rows, 1.3 % of the training set."),
        ("insertions", "withstand 66 added rows, 1.3 % of the training set."),
        ("replacements", "withstand 66 replaced rows, 1.3 % of the training set."),
        ("edits", "withstand 66 edits, 1.3 % of the training set."),
        ("flips", "withstand 66 flipped labels, 1.3 % of the training set."),
    ],
)
def test_headlines(threat, told):
    result = made_up() if threat == "flips" else under(made_up(), threat)
    assert told in said_by([result])


def test_as_many_added_rows_as_there_are_rows_are_not_called_any():
    c = made_up(20, 500, votes=False).certificates
    for threat in ("insertions", "edits"):
        noun = unit_of(threat).nouns
        c = replace(c, radius=np.full(20, 500), radius_upper=np.full(20, 500), threat=threat, n_attackable=0)
        said = said_by([Result("", c, None)])
        assert f"All 20 predictions withstand 500 or more {noun}; all 500 training rows are trusted." in said
        assert f"Withstands 500 or more {noun}." in said
        assert "withstand any" not in said.lower()
        assert "No row can be" not in said


def test_all_sources_together():
    c = under(made_up(20, 500, votes=False), "sources").certificates
    c = replace(c, radius=np.full(20, 40), radius_upper=np.full(20, 40))
    said = said_by([Result("", c, None)])
    assert "All 20 predictions withstand any labels of the 40 sources." in said
    assert "Not even all sources together change 20 predictions." in said
    sealed = said_by([Result("", replace(c, n_attackable=0), None)])
    assert "No source can change a label: all 500 training labels are trusted." in sealed


def test_trusted_labels_of_sources_and_trusted_rows():
    result = made_up()
    c = replace(under(result, "sources").certificates, n_attackable=4000)
    said = said_by([Result("", c, result.labels)])
    assert "of the 40 sources; 1,000 labels are trusted." in said
    assert "1,000 of the 5,000 training labels are trusted: not even their source can change them." in said
    c = replace(under(result, "deletions").certificates, n_attackable=4000)
    said = said_by([Result("", c, result.labels)])
    assert "1.7 % of the 4,000 rows that are not trusted; 1,000 are trusted." in said
    assert "deleted rows, share of those not trusted" in said
    assert "1,000 of the 5,000 training rows are trusted: an attacker cannot delete them." in said


@pytest.mark.parametrize("threat", ["insertions", "edits"])
@pytest.mark.parametrize(
    ("n_attackable", "told"),
    [
        (5000, ""),
        (4999, "; 1 row is trusted"),
        (4000, "; 1,000 rows are trusted"),
        (0, "; all 5,000 training rows are "),
    ],
)
def test_trusted_rows_where_rows_can_be_added(threat, n_attackable, told):
    noun = unit_of(threat).noun
    told += "trusted" if told.endswith(" ") else ""
    result = under(made_up(), threat)
    c = replace(result.certificates, n_attackable=n_attackable)
    assert f"withstand 66 {noun}s, 1.3 % of the training set{told}." in said_by([Result("", c, result.labels)])
    weak, strong = (replace(c, radius=np.full(200, own), radius_upper=np.full(200, own)) for own in (0, 5000))
    assert f"can each be changed by a single {noun}{told}." in said_by([Result("", weak, None)])
    assert f"withstand 5,000 or more {noun}s{told}." in said_by([Result("", strong, None)])


@pytest.mark.parametrize(("n_attackable", "told"), [(4999, "1 is"), (4000, "1,000 are"), (0, "all are")])
def test_trusted_rows_in_headings_and_in_tables_of_the_terminal(n_attackable, told, capsys):
    result = under(made_up(), "edits")
    result = replace(result, certificates=replace(result.certificates, n_attackable=n_attackable))
    heading = f"200 test points with true labels, 5,000 training labels of which {told} trusted, radii in edits"
    assert heading in said_by([result, made_up()])
    print_comparison([result])
    said = " ".join(capsys.readouterr().out.split())
    trusted = (
        told.replace(" ", " row " if n_attackable == 4999 else " rows ")
        if n_attackable
        else "all 5,000 training rows are"
    )
    assert f"Shares are of the 5,000 training rows; {trusted} trusted." in said


@pytest.mark.parametrize(
    ("threat", "told"),
    [
        ("flips", "labels that an attacker may flip"),
        ("sources", "labels that a corrupt source may change"),
        ("deletions", "rows that an attacker may delete"),
        ("insertions", "rows that an attacker may have added"),
        ("replacements", "rows that an attacker may replace"),
        ("edits", "rows that an attacker may edit"),
    ],
)
def test_what_nothing_may_be_tuned_on(threat, told):
    result = made_up() if threat == "flips" else under(made_up(), threat)
    what = told.split()[0]
    said = said_by([result])
    assert f"with the help of {told}, or the certificate is void: other {what} could have led" in said
    assert f"Nothing tuned on these {what}" in said
    both = said_by([result, under(made_up(), "deletions" if threat != "deletions" else "edits")])
    assert "Nothing tuned on these data" in both
    assert "with the help of data that an attacker may change" in both


def test_how_many_would_have_to_collude():
    result = under(made_up(), "sources")
    said = said_by([result])
    assert "At least 4 of the 40 sources would have to collude to change any one of these predictions." in said
    alone, pair = (100 * np.mean(result.certificates.radius_upper < own) for own in (1, 2))
    assert f"Of all 200 predictions, {alone:.1f} % can each be changed by some one source, {pair:.1f} % by" in said
    assert "Counted label by label, at least half of the correct predictions withstand 66 flips" in said
    assert "Accounts are not people." in said
    assert "give a coarser id as the source" in said
    weak = replace(result.certificates, radius=np.zeros(200, int), radius_upper=np.zeros(200, int))
    said = said_by([replace(result, certificates=weak, attacks=())])
    assert "can each be changed by a single corrupt source, of the 40 sources." in said
    assert "No collusion is needed for that: one source is enough" in said


def test_the_table_of_sources():
    result = under(made_up(), "sources")
    text = Page(report_page([result])).text
    assert "worker 0100 (2.0 %)9 (4.5 %)" in text
    assert "One attack of each that changes any was replayed" in text
    assert "No single one of the others is known to change a prediction." in text
    assert "At least so many predictions can be changed by it alone" in text
    assert "at least half3" in text.replace(" ", "").replace("atleasthalf", "at least half")
    bare = Page(report_page([replace(result, powers=(), in_flips=None)])).text
    assert "can change alone" not in bare
    assert "Label by label, it" not in bare
    strong = Page(report_page([replace(result, powers=result.powers[:9])])).text
    assert "One attack of each was replayed" in strong
    assert "No single one of the others" not in strong


@pytest.mark.parametrize(
    ("in_flips", "told"), [(0, "is not proven to withstand one flip"), (1, "withstands 1 flip"), (5000, "any flips")]
)
def test_radii_in_flips_are_said_to_be_withstood(in_flips, told):
    result = under(made_up(), "sources")
    text = Page(report_page([replace(result, in_flips=np.full(200, in_flips))])).text
    cards = re.findall(r"Label by label, it [^.]*\.", text)
    assert len(cards) == 10
    assert all(told in card for card in cards)


def test_what_one_source_can_do_is_open_where_no_attack_is_known():
    result = under(made_up(4, 500, votes=False, exact=1), "sources")

    def said(radius, upper):
        c = replace(result.certificates, radius=np.array(radius), radius_upper=np.array(upper))
        return said_by([Result("", c, None)])

    told = said([0, 0, 0, 1], [40, 40, 40, 40])
    assert (
        "Of 4 predictions, 0 are known to be changeable by one source, with its own labels alone; 1 is proven to "
        in told
    )
    assert "withstand whatever any one source does; of 3 neither is known." in told
    told = said([0, 2, 2, 1], [0, 2, 3, 40])
    assert "1 is known to be changeable by one source" in told
    assert "3 are proven to withstand whatever any one source does." in told


def test_parts_of_attacks():
    said = said_by([under(made_up(), "sources")])
    assert re.search(r"worker 0 changes \d+ labels", said)
    assert "Sources that are listed belong to a known attack" in said
    assert re.search(r"row \d+ deleted \d", said_by([under(made_up(), "deletions")]))
    assert re.search(r"\d rows added all with the same input, labelled \d", said_by([under(made_up(), "insertions")]))
    assert re.search(r"row \d+ replaced \d → \d", said_by([under(made_up(), "replacements")]))


def test_added_rows_that_are_the_same_are_told_once():
    none = np.empty(0, np.int64)
    inputs, labels = np.array([[1.0], [1.0], [2.0], [1.0]]), np.array(["a", "a", "a", "b"])
    attack = Attack(0, none, labels[:0], labels[:0], inserted=inputs, inserted_labels=labels, threat="insertions")
    assert [(part.name, part.said) for part in parts_of(attack)] == [
        ("2 rows added", "all with the same input, labelled a"),
        ("row added", "labelled a"),
        ("row added", "labelled b"),
    ]
    assert inputs_told(attack) == ""
    swaps = replace(attack, deleted=np.arange(4), deleted_labels=labels, threat="replacements")
    assert inputs_told(swaps) == "The new rows have 2 different inputs."
    assert inputs_told(replace(swaps, inserted=np.ones((4, 1)))) == "All new rows have the same input."
    for threat in ("insertions", "replacements"):
        assert "in numbers: flipcert attack --format csv" in said_by([under(made_up(), threat)])
    assert "in numbers" not in said_by([under(made_up(), "deletions")])


@pytest.mark.parametrize("threat", ["insertions", "replacements", "edits", "deletions"])
def test_a_given_c_is_said_to_cap_radii(threat):
    rng = np.random.default_rng(0)
    X, y = np.concatenate([rng.normal(0, 1, (20, 2)), rng.normal(2, 1, (20, 2))]), np.repeat([0, 1], 20)
    free = flipcert.KernelSVM(flipcert.kernels.RBF(0.5)).fit(X, y)
    tight = flipcert.KernelSVM(flipcert.kernels.RBF(0.5), C=free.C_max_).fit(X, y)
    said = {model: said_by([Result("", model.certify(X[:5], threat=threat), None)]) for model in (free, tight)}
    told = 'no attack is known. A given C caps radii; C="auto" does not.'
    assert (told in said[tight]) == (threat != "deletions")
    assert told not in said[free]


def test_an_attack_that_is_not_larger_than_the_radius_is_refused():
    result = under(made_up(), "sources")
    lifted = replace(result.certificates, radius=result.certificates.radius + 1)
    with pytest.raises(ValueError, match=r"an attack of \d+ corrupt sources on row"):
        report_page([replace(result, certificates=lifted)])


def test_threats_are_never_compared():
    flips, again = made_up(name="a"), made_up(name="b", seed=1)
    sources, more = under(made_up(name="c"), "sources"), under(made_up(name="d"), "sources", n_sources=50)
    assert list(cohorts([flips, sources, again, more]).values()) == [[0, 2], [1], [3]]
    said = said_by([flips, sources, again])
    assert "their radii do not count the same: flipped labels or corrupt sources" in said
    assert "200 test points with true labels, 5,000 training labels, radii in corrupt sources of 40" in said
    assert "200 test points with true labels, 5,000 training labels, radii in flips" in said
    assert "radii in flips" not in said_by([flips, made_up(100)])
    assert "Poisoned training data: what the predictions withstand" in said
    assert "their labels do not come from as many sources" in said_by([sources, more])


def test_plots():
    result = under(made_up(), "sources")
    c, y = result.certificates, result.labels
    assert plots.plot_certified_accuracy(c, y).axes[0].get_xlabel() == "corrupt sources\n(of 40 sources)"
    axes = plots.plot_median_robustness({1: c, 10: c}, y).axes[0]
    assert axes.get_ylabel() == "corrupt sources\n(of 40 sources)"
    assert axes.get_title() == "Corrupt sources that at least half of the correct predictions withstand"
    withstood = "corrupt sources proven to be withstood\n(of 40 sources)"
    assert plots.plot_radii(c, y).axes[0].get_xlabel() == withstood
    assert plots.plot_radius_by_class(c, y).axes[0].get_xlabel() == withstood
    added = replace(made_up().certificates, threat="insertions", n_attackable=3000)
    assert plots.plot_certified_accuracy(added, y).axes[0].get_xlabel() == "added rows"
    gone = replace(added, threat="deletions")
    told = "deleted rows\n(of 3,000 rows that are not trusted; 2,000 are trusted)"
    assert plots.plot_certified_accuracy(gone, y).axes[0].get_xlabel() == told
    with pytest.raises(ValueError, match=r"certificates must be of one threat.*got 'flips', 'sources'\."):
        plots.plot_certified_accuracy({"a": made_up().certificates, "b": c}, y)
    with pytest.raises(ValueError, match="of one threat"):
        plots.plot_median_robustness({1: made_up().certificates, 2: c}, y)


def test_key_figures_name_the_threat():
    assert "threat" not in summarise(made_up())
    summary = summarise(under(made_up(), "sources"))
    assert (summary["threat"], summary["sources"], summary["median_radius_in_flips"]) == ("sources", 40, 66)
    assert list(summary["certified_accuracy"]) == ["1", "2", "5", "10", "20"]
    assert summarise(under(some_trusted(made_up(), 0), "insertions"))["certified_accuracy"] != {}


def test_a_threat_without_words_of_its_own_has_plain_ones():
    c = replace(made_up().certificates, threat="swaps")
    said = said_by([Result("", c, None)])
    assert "swaps, 1.3 % of the training set." in said
    assert "swaps proven to be withstood" in said
    assert "flipped label" not in said


def test_names_of_sources_are_text():
    result = under(made_up(), "sources")
    powers = tuple(SourcePower(name, 10, 3) for name in NASTY.tolist())
    attacks = tuple(
        replace(attack, sources=np.resize(NASTY, attack.size), by=np.resize(NASTY, attack.indices.size))
        for attack in result.attacks
    )
    source = report_page([replace(result, powers=powers, attacks=attacks)])
    Page(source)
    assert "<script>document" not in source
    assert 'onerror="' not in source
    assert "{{ 7 * 7 }}" in Page(source).text
