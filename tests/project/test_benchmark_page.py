"""The page of benchmarks says what the records say; records are written whole, and ratios are taken in turns."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import numpy as np
import pytest

import flipcert
from benchmarks import bars, checks, headlines, page, scale_page, timing
from benchmarks.cost_model import Cluster, Job, constants_of, fitted, predict, product_terms
from benchmarks.records import Record, load, save
from benchmarks.timing import Spread

MACHINE = {"cpu": "a processor", "cores": "2", "versions": "flipcert 1", "commit": "abc"}


def record(name="svm-given", group="svm", **fields):
    values = {
        "job": "one SVM", "measured": Spread(1.234, 1.2, 1.3, 7), "method": "certify over the product", "unit": "×",
        "target": 1.5, "data": "synthetic stand-in", "checked": "3 points equal", "machine": MACHINE,
    }  # fmt: skip
    return Record(name, group, **values | fields)


def line(records):
    return next(row for row in page.render(records).splitlines() if row.startswith("| one SVM |"))


def test_a_row_has_job_target_and_figure_and_its_note_the_rest():
    cells = [cell.strip() for cell in line([record()]).strip("|").split("|")]
    assert cells == ["one SVM", "≤ 1.5 ×", "1.23 × (1.2 to 1.3)", "yes", "1"]
    note = "1. certify over the product; 7 repetitions; synthetic stand-in; checked: 3 points equal."
    assert note in page.render([record()]).splitlines()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"target": 1.0}, "| no |"),
        ({"target": 1.0, "at_most": False}, "| yes |"),
        ({"target": 1.0, "quick": True}, "| quick |"),
        ({"others": 0.5}, "1.23 × (1.2 to 1.3) † |"),
        ({"unit": "", "measured": Spread(1.05, 1.05, 1.05, 3)}, "| 1.05 |"),
        ({"measured": Spread(1234.5, 1200.0, 1300.0, 3)}, "1,234 × (1,200 to 1,300)"),
    ],
)
def test_what_a_row_says(fields, text):
    assert text in line([record(**fields)])


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"quick": True}, "quick run, small sizes"),
        ({"others": 0.5}, "† Machine not idle: others used 50 % of it."),
        ({"details": {"share_exact": 0.987}}, "exact for 98.7 % of the points"),
        ({"job": "one SVM, n = 50,000, d = 512, K = 10, T = 1"}, "; n = 50,000, d = 512, K = 10; 7 rep"),
    ],
)
def test_what_is_said_below_a_table(fields, text):
    assert text in page.render([record(**fields)])


def test_rows_that_were_taken_alike_share_a_note():
    text = page.render([record(), record("svm-standardised", others=0.5), record("few-1", "few", data="digits")])
    places = [row.strip("| ").split(" | ")[-1] for row in text.splitlines() if row.startswith("| one SVM |")]
    assert places == ["1", "1", "2"]


def test_the_page_begins_with_headlines_and_why_some_are_missed():
    missed = record("few-1", "few", target=0.5)
    front = page.render([record(), missed]).partition("## ")[0]
    assert f"![Time of each job over that of the product, as bars on a logarithmic axis]({bars.BARS.name})" in front
    assert "| certify 2,048 points, one SVM | 1.23 × | ≤ 1.5 × | yes |" in front
    assert f"| 1.23 × | ≤ 0.5 × | no: {headlines.WHY_MISSED['few-1']} |" in front
    assert f"missed: {headlines.WHY_MISSED['few-1']}." in page.render([missed])
    assert headlines.WHY_MISSED["few-1"] not in page.render([record("few-1", "few")])


def test_headlines_and_reasons_are_about_rows_that_there_are_or_will_be():
    to_come = {"streamed-workers", "streamed-ensemble"}
    names = {one.name for one in load()} | to_come
    assert set(headlines.JOBS) <= names
    assert set(headlines.WHY_MISSED) <= names
    assert set(headlines.OF_THEIR_OWN) <= set(headlines.JOBS)


def test_the_picture_has_a_bar_for_each_headline_as_long_as_its_figure():
    records = [
        record(measured=Spread(10.0, 10, 10, 3)), record("imagenet", target=0.5, measured=Spread(1.0, 1, 1, 3)),
        record("predict-svm-given", measured=Spread(0.1, 0.1, 0.1, 3)), record("attacks-svm"), record("other"),
    ]  # fmt: skip
    drawn = [one for one in ElementTree.fromstring(bars.svg(records)).iter() if one.tag.endswith("rect")][:-2]
    assert [one.get("class") for one in drawn] == ["met", "missed", "missed"]
    short, long, middle = (float(one.get("width")) for one in drawn)
    assert long - middle == pytest.approx(middle - short, abs=0.2)


def test_rows_of_two_machines_are_told_apart():
    other = record("svm-standardised", machine=MACHINE | {"cores": "64"})
    text = page.render([record(), other])
    assert "1. a processor, 2 cores" in text
    assert "2. a processor, 64 cores" in text
    assert "machine 2" in text


def test_memory_and_tightness_have_tables_of_their_own():
    details = {"scaling": "given", "model": "SVM", "n_partitions": 10, "mean_gap": 0.25}
    share = Spread(0.98, 0.98, 0.98, 1000)
    time = {"time": {"median": 2.5}}
    text = page.render(
        [
            record("memory-svm", "memory", unit="GiB", job="peak"),
            *(
                record(f"t-{exact}", "tightness", measured=share, target=0.99, at_most=False,
                       details=details | time | {"exact": exact})
                for exact in (False, True)
            ),
        ]
    )  # fmt: skip
    assert text.index("## Memory") < text.index("| peak |") < text.index("## Tightness")
    cells = "0.980 (missed) | 0.250 | 2.5 ×"
    assert f"| given | SVM | 10 | {cells} | {cells} |" in text


def test_methods_are_compared_by_number_of_flips():
    details = {"flips": [0, 1, 5], "accuracies": [0.9, 0.85, 0.5], "median": 5}
    text = page.render([record("a-svm", "accuracy", measured=Spread(0.9, 0.9, 0.9, 360), details=details)])
    assert "| method | 0 flips | 1 flip | 5 flips | median of the correct |" in text
    assert "| one SVM | 0.900 | 0.850 | 0.500 | 5 |" in text
    assert "Share of 360 test points" in text


def test_records_come_back_as_they_were_and_in_order(tmp_path):
    records = [record(f"ensembles-{n}", details={"share_exact": 1.0}) for n in (10, 50, 1000)]
    for one in reversed(records):
        save(one, tmp_path)
    assert load(tmp_path) == records


def test_a_record_is_written_whole_or_not_at_all(tmp_path):
    save(record(), tmp_path)
    before = (tmp_path / "svm-given.json").read_text()
    with pytest.raises(TypeError):
        save(record(details={"bad": object()}), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["svm-given.json"]
    assert (tmp_path / "svm-given.json").read_text() == before
    assert json.loads(before)["machine"] == MACHINE


def test_committed_records_make_the_committed_page():
    assert page.PAGE.read_text() == page.render(load())
    assert bars.BARS.read_text() == bars.svg(load())


def test_ratios_are_taken_in_turns():
    calls = []
    clock = iter(np.cumsum([0, 3, 0, 1, 0, 1, 0, 3])).__next__
    spread = timing.compare(lambda: calls.append("ours"), lambda: calls.append("theirs"), 2, clock)
    assert calls == ["ours", "theirs", "ours", "theirs", "theirs", "ours"]
    assert spread == Spread(3.0, 3.0, 3.0, 2)


def test_exponent_of_a_power():
    sizes = [100, 200, 400]
    times = np.array([[n**1.5 for n in sizes], [7 * n**1.5 for n in sizes]])
    assert timing.exponent(sizes, times).median == pytest.approx(1.5)


def test_a_check_that_compares_nothing_fails(blobs):
    X_train, y_train, X_test, _ = blobs
    certificates = flipcert.KernelSVM().fit(X_train, y_train).certify(X_test)
    certificates.rounding_sensitive[:] = True
    with pytest.raises(checks.Mismatch, match="nothing to check"):
        checks.steady(certificates, 5)


def test_a_wrong_radius_is_noticed(blobs):
    from benchmarks.data import Features

    X_train, y_train, X_test, _ = blobs
    features = Features(X_train, y_train, X_test, 3, "blobs")
    certificates = flipcert.KernelSVM().fit(X_train, y_train).certify(X_test)
    assert checks.check_stand_alone(certificates, features, 15) == "sorted in full: 15 points equal"
    certificates.radius[2] += 1
    with pytest.raises(checks.Mismatch, match="certificate of test point 2"):
        checks.check_stand_alone(certificates, features, 15)


@pytest.mark.parametrize("change", [-1000, 1000])
def test_a_wrong_radius_of_an_ensemble_is_noticed(blobs, change):
    from benchmarks.data import Features

    X_train, y_train, X_test, _ = blobs
    features = Features(X_train, y_train, X_test, 3, "blobs")
    model = flipcert.PartitionEnsemble(flipcert.KernelSVM(), n_partitions=5).fit(X_train, y_train)
    certificates = model.certify(X_test)
    assert checks.check_bounds(certificates, model, features, 15).startswith("between the published bounds")
    certificates.radius[3] += change
    certificates.radius_upper[3] += change
    with pytest.raises(checks.Mismatch, match="point 3"):
        checks.check_bounds(certificates, model, features, 15)


def test_the_model_of_cost_finds_the_constants_that_made_its_data():
    terms = {
        "product": [product_terms(n, d, b) for n in (100, 5_000) for d in (10, 100) for b in (1, 50)],
        "selection": [(n, K) for n in (100, 5_000) for K in (2, 100)],
        "aggregation": [(n, N * 10) for n in (100, 5_000) for N in (3, 50)],
        "transfer": [(size * count, count) for size in (0, 1_000) for count in (5, 50)],
    }
    true = {
        "product": (1e-10, 3e-10),
        "selection": (5e-10, 1e-6),
        "aggregation": (1e-9, 2e-8),
        "transfer": (1e-9, 1e-3),
    }
    measured = {step: {"terms": terms[step], "seconds": np.array(terms[step]) @ true[step]} for step in terms}
    constants, errors = constants_of(measured)
    assert np.allclose(list(vars(constants).values()), np.concatenate(list(true.values())))
    assert max(errors.values()) < 1e-6
    # Nothing is made faster by more work.
    assert fitted([[1, 1], [2, 1]], [1.0, 0.9])[0].min() >= 0

    one = predict(Job(5_000, 100, 10, 1_000, 1, 50), Cluster(1, storage=np.inf), constants)
    operations, read = product_terms(5_000, 100, 50)
    assert one["product"] == pytest.approx(20 * (1e-10 * operations + 3e-10 * read))
    assert one["selection"] == pytest.approx(1_000 * (5e-10 * 5_000 + 1e-6 * 10))
    many = predict(Job(5_000, 100, 10, 1_000, 1, 50), Cluster(16), constants)
    # 20 blocks on 16 cores take two rounds; both machines load the training set.
    assert many["product"] == pytest.approx(one["product"] / 10)
    assert many["transfer"] == pytest.approx(one["transfer"] + 2 * 4 * 5_000 * 100 / 10e9)


def test_the_page_on_scale_is_that_of_the_records():
    text = scale_page.PAGE.read_text()
    assert text == scale_page.render(text, load())
