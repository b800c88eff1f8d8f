"""One SVM whose training rows come and go: certify over the product that forms its weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import flipcert
from benchmarks.checks import check_row_changes
from benchmarks.data import cifar10
from benchmarks.product import product
from benchmarks.records import Record
from benchmarks.settings import Settings
from benchmarks.timing import compare


def rows(settings: Settings) -> Iterator[Record]:
    """Rows deleted, inserted, replaced, edited; a new one may be as long as the longest that is there."""
    for scaling in ("given", "standardised"):
        features = cifar10(settings.n_train, settings.n_test, scaling == "standardised")
        longest = float(np.sqrt(np.einsum("ij,ij->i", features.train, features.train, dtype=np.float64).max()))
        model = flipcert.KernelSVM(max_norm=longest).fit(features.train, features.labels)
        for threat in ("deletions", "insertions", "replacements", "edits"):
            certificates = model.certify(features.test, threat=threat)
            checked = check_row_changes(certificates, features, longest, settings.size(50, 10))
            yield Record(
                name=f"rows-{threat}-{scaling}",
                group="rows",
                job=f"one SVM, {features.shape}, T = {settings.n_test:,}: radii in {threat}, features {scaling}",
                measured=compare(
                    lambda: model.certify(features.test, threat=threat),  # noqa: B023
                    product(features.test, features.train),
                    settings.pairs,
                ),
                unit="×",
                target=2.0,
                method="certify over the product, in turns; fitting, which only keeps the features, is left out",
                data=features.name,
                checked=f"{checked}; exact: {100 * certificates.exact.mean():.1f} % of all points",
                quick=settings.quick,
            )
