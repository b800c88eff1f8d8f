"""All cases, by the file that holds them."""

from __future__ import annotations

from tests.goldens import ensembles, functions, others, single, streamed

GROUPS = {
    "single": single.CASES,
    "others": others.CASES,
    "ensembles": ensembles.CASES,
    "functions": functions.CASES,
    "streamed": streamed.CASES,
}
