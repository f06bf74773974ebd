"""Lance: a table in its own columnar format, made for random access."""

from __future__ import annotations

import importlib
from typing import Any

DISTRIBUTION = "pylance"


def convert(source: str, folder: str) -> None:
    """Write the JSON lines as a Lance table."""
    table = importlib.import_module("pyarrow.json").read_json(source)
    importlib.import_module("lance").write_dataset(table, folder)


class Opponent:
    """The table, of which rows are taken."""

    def __init__(self, folder: str) -> None:
        self._table = importlib.import_module("lance").dataset(folder)

    def get(self, row: int) -> Any:
        """Return one row as a dict."""
        return self._table.take([row]).to_pylist()[0]

    def get_many(self, rows: list[int]) -> Any:
        """Return some rows as dicts."""
        return self._table.take(rows).to_pylist()
