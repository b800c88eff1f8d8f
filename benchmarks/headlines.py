"""What the page of benchmarks says first: a dozen jobs in plain words, and why some miss what was wanted."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.records import Record

# Records in the order of the page, in words that need no letters.
JOBS = {
    "predict-svm-given": "predict 2,048 points, one SVM",
    "predict-ridge-given": "predict 2,048 points, one ridge, some near a tie",
    "fit-1000": "fit an ensemble of 1,000 SVMs",
    "svm-given": "certify 2,048 points, one SVM",
    "svm-standardised": "the same, weights of both signs",
    "few-1": "certify one point alone, one SVM",
    "imagenet": "certify 64 points, 1.28 million rows, 1,000 classes",
    "ridge-linear": "fit and certify 10,000 points, one ridge",
    "attacks-svm": "worst_flips, over certify",
    "streamed-workers": "5 million rows in a file, two processes over two threads",
    "streamed-ensemble": "5 million rows in a file, ensemble of 100",
    "ensembles-50": "certify, ensemble of 50 SVMs",
    "standardised-50": "the same, weights of both signs",
    "ensembles-1000": "certify, ensemble of 1,000 SVMs",
    "standardised-1000": "the same, weights of both signs",
    "shell-svm": "from the shell with attacks, a million rows",
    "shell-ensemble": "from the shell with attacks, ensemble of 100",
    "published-standardised-500-numpy": "the paper's algorithms, loops in NumPy, over flipcert",
}
# What others divide by is not the product.
OF_THEIR_OWN = ("attacks-svm", "streamed-workers", "published-standardised-500-numpy")

_PUBLISHED = (
    "the baseline takes some 600 to 2,300 products: a thousandth of that is less, or little more, than the product "
    "that flipcert forms its weights with"
)
_NEAR_TIES = (
    "near ties are decided by their weights, formed in blocks of 512 points; no BLAS promises that smaller blocks "
    "round alike"
)
_COMPILING = "numba reads the source of every function once: lowering and types take two thirds of that time"
WHY_MISSED = {
    "few-1": "a point alone is formed in a block of 32 rows, which by itself takes several times as long as one row",
    "few-64": "64 points are formed in two blocks of 32 rows, one a core, which alone takes 1.4 times as long",
    "few-400": "400 points fill four blocks of 128 rows: 512 rows are formed, which alone takes 1.4 times as long",
    "predict-ridge-given": _NEAR_TIES,
    "predict-ridge-standardised": _NEAR_TIES,
    "predict-svm-standardised": _NEAR_TIES,
    "standardised-10": "the largest weights of both signs are sorted, row by row; most of the time goes there",
    "standardised-50": "some 200 of 1,000 weights are sorted for every vote, which takes longer than to form them",
    "standardised-500": "a million votes: for each, the largest gains of nine rivals are picked out of 100 weights",
    "standardised-1000": "two million votes: for each, the largest gains of nine rivals are picked out of 50 weights",
    "published-given-50-numpy": _PUBLISHED,
    "published-given-500-numpy": _PUBLISHED,
    "published-standardised-50-numpy": _PUBLISHED,
    "published-standardised-500-numpy": _PUBLISHED,
    "shell-svm": "64 points are little work: to measure a gigabyte of inputs, to load compiled code and to touch memory"
    " of blocks for the first time take about as long as the product, each",
    "streamed-workers": "twelve waves of tasks pass over the inputs, each a fifth of a second longer than its work",
    "streamed-ensemble": "within 512 MiB a block holds four test points, so that inputs are read eight times",
    "startup-cold-svm": _COMPILING,
    "startup-cold-ensemble": _COMPILING,
    "startup-cold-demo": _COMPILING,
    "startup-names": "all estimators are imported with what they are built on, not only scikit-learn and numba",
}


def of_page(records: Sequence[Record]) -> list[tuple[str, Record]]:
    """Words and record of every headline that was measured."""
    by_name = {record.name: record for record in records}
    return [(words, by_name[name]) for name, words in JOBS.items() if name in by_name]


def why(record: Record) -> str:
    """Why a target is missed; nothing where it is met, and where nobody knows."""
    return WHY_MISSED.get(record.name, "") if record.met is False and not record.quick else ""
