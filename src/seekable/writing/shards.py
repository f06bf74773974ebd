"""Which rows go into which file: pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Shards"]

_DIGITS = 5


@dataclass(frozen=True, slots=True)
class Shards:
    """The files that the records of a dataset are cut into.

    There is at least one, so that a folder of no records is still one that can be opened.

    Example:
        >>> shards = Shards(records=250, rows_per_file=100, suffix=".jsonl")
        >>> len(shards), shards.name(2), shards.rows(2)
        (3, 'part-00002-of-00003.jsonl', range(200, 250))
    """

    records: int
    """How many records there are, holes among them."""

    rows_per_file: int
    """How many of them a file holds; the last one may hold fewer."""

    suffix: str
    """What the names end with."""

    def __len__(self) -> int:
        """Return how many files there are."""
        return max(1, -(-self.records // self.rows_per_file))

    def name(self, number: int) -> str:
        """Return the name of a file."""
        width = max(_DIGITS, len(str(len(self))))
        return f"part-{number:0{width}}-of-{len(self):0{width}}{self.suffix}"

    @property
    def names(self) -> list[str]:
        """The names of all files, in the order of their rows."""
        return [self.name(number) for number in range(len(self))]

    def rows(self, number: int) -> range:
        """Return the rows of the dataset that a file holds."""
        first = number * self.rows_per_file
        return range(first, min(first + self.rows_per_file, self.records))
