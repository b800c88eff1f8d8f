"""What a threat needs to be given in the shell."""

from __future__ import annotations

from collections.abc import Sequence

from flipcert.cli.options import Proof
from flipcert.datasets.table import Table
from flipcert.labels.threats import SOURCES, THREATS
from flipcert.runs.settings import Settings


def check_threat_of(proof: Proof, settings: Sequence[Settings], train: Table) -> None:
    """Raise ValueError if a threat, or a partition, needs what the training data do not say."""
    if proof.threat not in THREATS:
        raise ValueError(f"--threat must be one of {', '.join(THREATS)}; got {proof.threat!r}.")
    if THREATS[proof.threat].changes_rows:
        _refuse_fitted_scales(proof.threat, settings)
        for option in ("encode", "impute"):
            if option in train.prepared:
                raise ValueError(
                    f"--{option} {train.prepared[option]} goes by all training rows, and --threat {proof.threat} "
                    "changes these; prepare both files beforehand, by rows that you trust."
                )
    by_source = any(own.partitions > 1 and own.partition_rule == "source" for own in settings)
    if train.givers is not None or not (by_source or proof.threat == SOURCES.name):
        return
    what = "--threat sources" if proof.threat == SOURCES.name else "--partition-rule source"
    raise ValueError(f"{what} needs --source, the column that says who gave each label.")


def _refuse_fitted_scales(threat: str, settings: Sequence[Settings]) -> None:
    """Raise ValueError if features are scaled by all training rows: whoever changes rows would change the scale."""
    fitted = [own.scale for own in settings if own.scale in ("centre", "standard")]
    if fitted:
        raise ValueError(
            f"--scale {fitted[0]} goes by all training rows, and --threat {threat} changes these; use --scale unit, or "
            "scale both files beforehand by rows that you trust."
        )
