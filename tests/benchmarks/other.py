"""An opponent that delivers other records than it was given."""

from __future__ import annotations

from typing import Any

from tests.benchmarks import plain

DISTRIBUTION, convert = plain.DISTRIBUTION, plain.convert


class Opponent(plain.Opponent):
    def get(self, row: int) -> Any:
        return {**self.records[row], "text": ""}
