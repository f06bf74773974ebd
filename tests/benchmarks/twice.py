"""An opponent that delivers one record of an epoch twice, and another one not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.benchmarks import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

DISTRIBUTION, convert = plain.DISTRIBUTION, plain.convert


class Opponent(plain.Opponent):
    def epoch(self) -> Iterable[Any]:
        return [self.records[0], *self.records[:-1]]
