"""What one attack on all points does, as files of a run: a certificate for each model, and a table of all attacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flipcert.engine.files import refuse_odd_files
from flipcert.report.result import Collective, Result
from flipcert.results.collective_certificate import CollectiveCertificate
from flipcert.runs.operations import attack_of, columns_of_lines, lines_of, write_parquet
from flipcert.runs.row_ids import with_ids

COLLECTIVE_ATTACKS = "collective-attacks.parquet"


def collective_file(number: int, n_models: int) -> str:
    """Where the certificate of a model is."""
    return "collective.npz" if n_models == 1 else f"collective-{number}.npz"


def write_collective_results(folder: Path, results: Sequence[Result]) -> list[str]:
    """Write the certificates, and the attacks that were found, where there are any; name the files."""
    import pyarrow as pa

    names = []
    lines: list[dict[str, Any]] = []
    for number, result in enumerate(results):
        if result.collective is not None:
            names.append(collective_file(number, len(results)))
            result.collective.certificate.save(folder / names[-1])
            lines += [with_ids(line, result.train_ids) for line in attack_lines(result.collective, number)]
    if names:
        table = pa.table(columns_of_lines(lines, ["point", "budget", "flip", "training_row"]))
        write_parquet(folder / COLLECTIVE_ATTACKS, table)
        names.append(COLLECTIVE_ATTACKS)
    return names


def attack_lines(collective: Collective, number: int) -> list[dict[str, Any]]:
    """The attacks of a model as lines: for every budget, what is done to which training label or row."""
    budgets = collective.certificate.flips.tolist()
    return [
        {"point": number, "budget": budget, "flip": step, **line}
        for budget, attack in zip(budgets, collective.attacks, strict=True)
        if attack is not None
        for step, line in enumerate(lines_of(attack))
    ]


def read_collective_results(folder: Path, n_models: int) -> list[Collective | None]:
    """Read them again, one for each model; a ValueError, or a missing file, if they are not what was written."""
    lines = _attack_lines(folder / COLLECTIVE_ATTACKS)
    found: list[Collective | None] = []
    for number in range(n_models):
        certificate = CollectiveCertificate.load(folder / collective_file(number, n_models))
        own, budgets = lines.get(number, {}), certificate.flips.tolist()
        try:
            attacks = [
                None if witness is None else attack_of(k, certificate.threat, own.get(budget, []))
                for k, (budget, witness) in enumerate(zip(budgets, certificate.attacks, strict=True))
            ]
        except (LookupError, TypeError) as error:
            raise ValueError(f"{COLLECTIVE_ATTACKS} is not what was written.") from error
        found.append(Collective(certificate, tuple(attacks)))
    return found


def _attack_lines(path: Path) -> Mapping[int, Mapping[int, list[dict[str, Any]]]]:
    """The lines of the table of attacks, by model and budget."""
    from pyarrow import ArrowException, parquet

    refuse_odd_files(path)
    found: dict[int, dict[int, list[dict[str, Any]]]] = {}
    try:
        for line in parquet.ParquetFile(path).read().to_pylist():
            found.setdefault(line["point"], {}).setdefault(line["budget"], []).append(line)
    except (ArrowException, LookupError, TypeError) as error:
        raise ValueError(f"{path.name} is not what was written.") from error
    return found
