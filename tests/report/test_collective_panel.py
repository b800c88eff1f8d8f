"""The panel about one attack on all test points: one sentence, one picture, and honest words for every case."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import flipcert
from flipcert.report import report_page
from flipcert.report.collective_words import evidence, finding, share_of
from flipcert.report.words import Exposure
from tests.helpers.collective import collective_of
from tests.helpers.pages import Page
from tests.helpers.results import NASTY, made_up, real_result, some_trusted, sweep, under


def attacked(result, *budgets, **options):
    """The result with what one attack on all of its points does."""
    return replace(result, collective=collective_of(result, budgets or (10, 50, 100), **options))


def text_of(result):
    return Page(report_page([result])).text


def said(result, k=2):
    c = result.collective.certificate
    return f"{finding(c, k)}. {' '.join(evidence(c, k))}"


def test_the_panel_is_the_first_and_says_what_is_proven_and_found():
    result = attacked(made_up(votes=False))
    source = report_page([result])
    text = Page(source).text
    assert "One attack of 100 flips, 2.0 % of the training set, changes at most 58 of 159 correct predictions." in text
    assert "Point by point, 116 of them could change, each by an attack of its own." in text
    assert "lifts certified accuracy from 21.5 % to 50.5 %" in text
    assert "An attack of 100 flips that was found, and replayed, changes 29: the truth lies between 29 and 58." in text
    assert source.index('id="together-0"') < source.index('id="curve-0"')
    # At the top of the page as well.
    assert text.index("One attack of 100 flips") < text.index("accuracy without an attack")
    for part in ("proven to stay correct, point by point", "proven to stay correct, against one attack"):
        assert part in text
    for part in (
        "open: neither proven nor attacked",
        "changed by the attack that was found",
        "wrong without any attack",
    ):
        assert part in text
    assert "proven 50.5 %" in text
    assert "point by point 21.5 %" in text
    assert "after the attack found 65.0 %" in text
    assert "not which" in text.split("What is promised")[1]


def test_certificates_report_one_attack_on_all_points(tmp_path):
    result, path = attacked(made_up(votes=False)), tmp_path / "page.html"
    certificates, told = result.certificates, result.collective.certificate
    certificates.report(path, result.labels, collective=told)
    text = Page(path.read_text(encoding="utf-8")).text
    sentence = "One attack of 100 flips, 2.0 % of the training set, changes at most 58 of 159 correct predictions."
    assert sentence in text
    assert "lifts certified accuracy from 21.5 % to 50.5 %" in text
    # Which labels are flipped is not known without the training set.
    assert "An attack of 100 flips: " not in text
    certificates.report(path, result.labels)
    assert sentence not in Page(path.read_text(encoding="utf-8")).text
    with pytest.raises(ValueError, match="collective counts right predictions, but y is None"):
        certificates.report(path, collective=told)
    with pytest.raises(ValueError, match="collective is about something else: predictions differ"):
        certificates[:20].report(path, result.labels[:20], collective=told)
    with pytest.raises(TypeError, match="collective must be a CollectiveCertificate; got Certificates"):
        certificates.report(path, result.labels, collective=certificates)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"trusted": 1}, "n_attackable"),
        ({"reg": 11.0}, "model"),
        ({"classes": [0, 1, 2]}, "model"),
        ({"y": 1}, "true labels"),
        ({"threat": "sources"}, "threat"),
        ({"scale": 1.3}, "radii"),
    ],
)
def test_the_page_is_refused_a_certificate_of_another_model_or_other_rows(tmp_path, other, named):
    """Predictions alone do not tell: they are the same here, whatever else differs."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X, y_test = np.eye(3)[y] * 4 + rng.normal(size=(60, 3)) * 0.3, np.arange(20) % 3
    points = X[:20] * np.linspace(1, 6, 20)[:, None] + 0.2
    source = np.arange(60) // 5

    def model(trusted=0, reg=10.0, classes=None):
        own = flipcert.KernelRidge("rbf" if "scale" in other else "linear", reg=reg, classes=classes)
        return own.fit(X, y, trusted=np.arange(60) < trusted, source=source)

    told = model().certify_collectively(points, [2, 12], y_test, time_limit=2.0)
    path = tmp_path / "page.html"
    model().certify(points).report(path, y_test, collective=told)
    given = {name: other[name] for name in ("trusted", "reg", "classes") if name in other}
    certificates = model(**given).certify(points * other.get("scale", 1.0), threat=other.get("threat", "flips"))
    np.testing.assert_array_equal(certificates.prediction, told.prediction)
    with pytest.raises(ValueError, match=f"collective is about something else: {named}.* differ"):
        certificates.report(path, np.roll(y_test, other.get("y", 0)), collective=told)


@pytest.mark.parametrize("partitions", [1, 4])
def test_a_pipeline_and_an_ensemble_have_the_panel_too(tmp_path, partitions):
    X, y = load_iris(return_X_y=True)
    model = flipcert.PartitionEnsemble(flipcert.KernelRidge("linear"), partitions)
    model = make_pipeline(StandardScaler(), model).fit(X[::2], y[::2])
    told = flipcert.certify_collectively(model, X[1::2], [1, 3], y[1::2], time_limit=2.0)
    path = tmp_path / "page.html"
    flipcert.certify(model, X[1::2]).report(path, y[1::2], collective=told)
    assert "One attack of 3 flips" in Page(path.read_text(encoding="utf-8")).text


def test_bars_hold_all_points():
    result = attacked(made_up())
    bars = re.findall(r'<svg role="img" aria-label="One attack of (\d+) flips?\.(.*?)</svg>', report_page([result]))
    assert [int(budget) for budget, _ in bars] == [10, 50, 100]
    for _, bar in bars:
        widths = [float(width) for width in re.findall(r'width="([\d.]+)%"', bar)]
        starts = [float(start) for start in re.findall(r'x="([\d.]+)%"', bar)]
        assert sum(widths) == pytest.approx(100, abs=0.01)
        assert starts == pytest.approx(np.append(0, np.cumsum(widths)[:-1]).tolist(), abs=0.01)


def test_it_tells_which_points_fall_to_which_classes_and_which_labels_are_flipped():
    result = attacked(made_up(classes=["cat", "dog", "owl"], votes=False), 30, 60)
    c = result.collective.certificate
    text = text_of(result)
    fallen = c.changed(1)
    assert f"An attack of 60 flips: {fallen.size} correct predictions change" in text
    assert "Predictions that it changes" in text
    assert "Labels that it flips" in text
    for before, after in set(zip(c.prediction[fallen].tolist(), c.prediction_after[1][fallen].tolist(), strict=True)):
        assert f"{before} → {after}" in text
    attack = result.collective.attacks[1]
    for old, new in set(zip(attack.old.tolist(), attack.new.tolist(), strict=True)):
        assert f"{old} → {new}" in text
    assert f"{fallen[0]:,}" in text
    assert "<details>" in report_page([result]).split("together-0")[2].split("</section>")[0]


def test_more_pairs_of_classes_than_there_is_room_for_are_counted():
    result = attacked(made_up(500, classes=40), at_least=0.9, at_most=1.0)
    text = text_of(result)
    assert re.search(r"and \d+ more, between \d+ other pairs of classes", text)
    assert "1 other pair" not in text


def test_pictures_of_what_falls():
    result = real_result(flipcert.KernelRidge(reg=10.0), images=True)
    source = report_page([attacked(result, 2, 4)])
    panel = source[source.index('id="together-0"') : source.index('id="curve-0"')]
    assert 'class="picture"' in panel
    assert 'aria-label="test row' in panel


def test_proven_and_found_may_meet():
    result = attacked(made_up(), at_most=0.3, at_least=0.3)
    assert "changes exactly 34 of 159 correct predictions at worst" in said(result)
    assert "that was found, and replayed, changes all 34: no attack does more." in said(result)
    text = text_of(result)
    assert "open: neither" not in text
    assert "exactly 62.5 %" in text


def test_no_attack_may_be_known():
    result = attacked(made_up(), known=False)
    assert "No attack is known that changes any of them" in said(result)
    text = text_of(result)
    assert "Predictions that it changes" not in text
    assert "changed by the attack" not in text


def test_nothing_may_change():
    result = attacked(made_up(), at_most=0.0, at_least=0.0)
    assert "changes not a single one of 159 correct predictions." in said(result)
    assert "there is no attack to look for" in said(result)
    assert "not a single one" in text_of(result)


def test_no_more_than_point_by_point_is_said_with_the_reason():
    why = "Forest tells what flips do to each point, not what the same flips do to the others"
    result = attacked(made_up(), at_most=1.0, why_one_by_one=why, replayed=False)
    assert f"No more is proven than point by point: {why}." in said(result)
    assert "lifts" not in said(result)
    assert "changes at least 29" in said(result)
    text = text_of(result)
    assert f"No more is proven than point by point: {why}." in text
    assert "against one attack" not in text
    assert "An attack of 100 flips: at least 29 correct predictions change" in text


def test_a_bound_that_is_no_better_is_not_praised():
    assert "That is what is proven point by point as well." in said(attacked(made_up(), at_most=1.0))


def test_without_labels_all_predictions_count():
    result = attacked(replace(made_up(), labels=None))
    assert "of 200 predictions" in said(result)
    assert "lifts the certified share" in said(result)
    text = text_of(result)
    panel = text[text.index("One attack on all test points") : text.index("How many predictions stay as they are")]
    assert "correct" not in panel
    assert "proven to stay unchanged" in panel
    assert "wrong" not in panel


def test_trusted_labels_are_told():
    result = attacked(some_trusted(made_up(), 1010))
    start = "One attack of 100 flips, 9.9 % of the 1,010 labels that are not trusted, changes at most"
    assert said(result).startswith(start)
    assert "correct predictions; 3,990 labels are trusted." in said(result)
    assert "5.0 % of the 1,010 labels that are not trusted" in text_of(result)
    one = attacked(some_trusted(made_up(), 4999))
    assert "; 1 label is trusted." in said(one)


def test_with_all_labels_trusted_there_is_no_panel():
    result = some_trusted(made_up(), 0)
    result = attacked(result)
    assert "No label can be flipped: all 5,000 training labels are trusted" in str(
        finding(result.collective.certificate, 0)
    )
    assert evidence(result.collective.certificate, 0) == []
    assert "One attack on all test points" not in text_of(result)


def test_without_a_right_prediction_there_is_no_panel():
    result = made_up()
    c = result.certificates
    wrong = attacked(replace(result, labels=(c.prediction + 1) % 10, attacks=()))
    assert str(finding(wrong.collective.certificate, 0)).startswith("No prediction is correct, so there is none")
    assert "One attack on all test points" not in text_of(wrong)


@pytest.mark.parametrize(
    ("threat", "words", "heading"),
    [
        ("sources", "One attack of 5 corrupt sources, 2.0 % of the 250 sources, changes", "Sources that it takes"),
        ("deletions", "One attack of 60 deleted rows, 1.2 % of the training set, changes", "Deleted rows"),
        ("insertions", "One attack of 60 added rows, 1.2 % of the training set, changes", "Added rows"),
        ("replacements", "One attack of 60 replaced rows, 1.2 % of the training set, changes", "Replaced rows"),
        ("edits", "One attack of 60 edits, 1.2 % of the training set, changes", "Edits"),
    ],
)
def test_other_units_have_their_words(threat, words, heading):
    result = attacked(under(made_up(), threat, 250), *((1, 5) if threat == "sources" else (10, 60)))
    text = text_of(result)
    assert words in text
    assert heading in text
    panel = text[text.index("One attack on all test points") : text.index("How much accuracy survives")]
    assert "flip" not in panel
    if threat == "sources":
        assert re.search(r"worker \d+ changes 20 labels", panel)


def test_budgets_of_all_there_is_and_more():
    exposure = Exposure(300, 300)
    assert share_of(300, exposure) == "all there are"
    assert share_of(301, exposure) == "more than there are"
    assert share_of(3, exposure) == "1.0 % of the training set"
    assert share_of(300, Exposure(300, 300, "insertions")) == "as many as the training set has rows"
    assert share_of(600, Exposure(300, 300, "insertions")) == "more than the training set has rows"


def test_one_budget_and_one_flip():
    result = attacked(made_up(), 1, at_most=1.0, at_least=1.0)
    assert "One attack of 1 flip, 0.02 % of the training set, changes" in text_of(result)


def test_names_cannot_break_the_panel():
    result = attacked(made_up(classes=NASTY), why_one_by_one=NASTY[0])
    page = Page(report_page([result]))
    assert [name for name, _ in page.tags].count("script") == 1
    assert "img" not in [name for name, _ in page.tags]
    assert not [value for _, attributes in page.tags for value in attributes if value.startswith("on")]
    assert NASTY[0] in page.text
    turned = np.array(["a\u202eb", "שלום", "c"])
    text = text_of(attacked(made_up(classes=turned)))
    assert "\u202e" not in text
    assert "\u2068שלום\u2069" in text


def test_the_same_results_give_the_same_page():
    first, second = (report_page([attacked(made_up())]) for _ in range(2))
    assert first == second


def test_each_of_several_results_has_its_own():
    results = [attacked(result, 2, 4) for result in sweep(regs=(1.0,), partitions=(1, 5))]
    source = report_page(results)
    Page(source)
    assert 'id="together-0"' in source
    assert 'id="together-1"' in source


def test_certificates_of_other_predictions_are_refused():
    result = attacked(made_up())
    other = replace(made_up(seed=3), collective=result.collective)
    with pytest.raises(ValueError, match=r"results\[0\] has a collective certificate of other predictions"):
        report_page([other])
    with pytest.raises(ValueError, match=r"results\[0\] counts correct predictions, but has no labels"):
        report_page([replace(result, labels=None)])
