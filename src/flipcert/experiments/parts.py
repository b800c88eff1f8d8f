"""What is known about one certified test set, in files that appear whole: a run that is stopped goes on from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from flipcert.engine.files import whole_file

_FACTS = b"flipcert"


@dataclass(frozen=True, eq=False)
class Part:
    """Columns with an entry for each test point, and facts about all of them."""

    columns: Mapping[str, NDArray[Any]]
    facts: Mapping[str, Any]

    def write(self, path: Path) -> None:
        """Write the part to a file."""
        table = pa.table(dict(self.columns))
        with whole_file(path) as file:
            pq.write_table(table.replace_schema_metadata({_FACTS: json.dumps(self.facts)}), file)

    @classmethod
    def read(cls, path: Path) -> Part:
        """Read a part back."""
        table = pq.read_table(path)
        columns = {name: np.asarray(table[name].to_numpy()) for name in table.column_names}
        return cls(columns, json.loads(table.schema.metadata[_FACTS]))
