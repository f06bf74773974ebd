"""The columns of a table of records: which keys there are, and how their values are distributed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.viewer.facts.histogram import lengths_in_bins
from seekable.viewer.facts.key_paths import path_text
from seekable.viewer.facts.key_statistics import KeyTally
from seekable.viewer.facts.reading import Sampled, surveyed, whole_of
from seekable.viewer.facts.row_conditions import length_of

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from seekable.nodes.node import Node
    from seekable.viewer.facts.histogram import Histogram
    from seekable.viewer.facts.key_paths import KeyPath
    from seekable.viewer.facts.key_statistics import KeyFacts, TopValue

_MOST_COLUMNS = 300
_MOST_BARS = 5
_EXACT = 1e15


@dataclass(frozen=True, slots=True)
class ColumnBar:
    """The values of a column in one bin."""

    low: float
    high: float
    count: int

    has_high: bool
    """True if the upper edge belongs to the bin."""


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """A key that records have at their top, or within a dict there."""

    path: KeyPath
    count: int
    """The records that have it."""

    missing: int
    """The records without it, or with null."""

    labels: tuple[TopValue, ...]
    """The values, the most frequent first, where they are few and come again."""

    numbers: tuple[ColumnBar, ...]
    lengths: tuple[ColumnBar, ...]
    range: str
    """The least and the largest number, or length with its unit; empty without either."""

    @property
    def name(self) -> str:
        """The key as text."""
        return path_text(self.path)


@dataclass(frozen=True, slots=True)
class Columns(Sampled):
    """The columns of some records, those that most have first; while the work goes on, of the first ones."""

    columns: tuple[ColumnFacts, ...]
    left_out: int
    """The keys beyond the first 300 that were seen."""

    def document(self) -> dict[str, Any]:
        """Return the number of records that have each column, JSON-safe."""
        return {
            **self.counts(),
            "columns": [{"key": each.name, "count": each.count} for each in self.columns],
            "left_out": self.left_out,
        }


def columns(node: Node, *, n: int, seed: int = 0) -> Generator[Columns]:
    """Yield the columns of the records of a sample while it is read.

    Args:
        node: the data, with a length.
        n: the number of rows of the sample; all rows if there are fewer.
        seed: which sample.

    Raises:
        EndlessDataset: the node has no length.
        IndexStale: a file was changed after it was indexed.

    Example:
        >>> import seekable as sk
        >>> *_, found = columns(sk.from_sequence([{"a": 1, "b": {"c": 2}}, {"a": 3}])._node, n=9)
        >>> [(each.name, each.count, each.missing) for each in found.columns]
        [('a', 2, 0), ('b.c', 1, 1)]
    """
    survey = _ColumnSurvey()
    return surveyed(node, survey.add, survey.facts, n=n, seed=seed)


def top_paths(record: dict[Any, Any]) -> list[tuple[tuple[str, ...], Any]]:
    """Return the keys of a record with their values; inner keys in place of one that holds a dict.

    Example:
        >>> top_paths({"a": 1, "b": {"c": 2}, "d": {}})
        [(('a',), 1), (('b', 'c'), 2), (('d',), {})]
    """
    found: list[tuple[tuple[str, ...], Any]] = []
    for key, value in record.items():
        if type(value) is dict and value:
            found += [((str(key), str(inner)), below) for inner, below in value.items()]
        else:
            found.append(((str(key),), value))
    return found


class _ColumnSurvey:
    """Counts the keys of records, and their values."""

    def __init__(self) -> None:
        self._whole = 0
        self._tallies: dict[tuple[str, ...], KeyTally] = {}
        self._there: Counter[tuple[str, ...]] = Counter()
        """The records with a value that is not null, also where that is a dict."""
        self._lengths: dict[tuple[str, ...], list[int]] = {}
        self._left_out: set[tuple[str, ...]] = set()

    def add(self, rows: Sequence[int], records: Sequence[Any]) -> None:
        values: dict[tuple[str, ...], list[Any]] = {}
        for _, record in whole_of(rows, records):
            self._whole += 1
            is_dict = type(record) is dict
            for path, value in top_paths(record) if is_dict else [((), record)]:
                values.setdefault(path, []).append(value)
                self._there[path] += value is not None
            if is_dict:
                self._there.update(
                    (str(key),) for key, value in record.items() if type(value) is dict and value
                )
        for path, some in values.items():
            if path not in self._tallies and len(self._tallies) >= _MOST_COLUMNS:
                if len(self._left_out) < 100 * _MOST_COLUMNS:
                    self._left_out.add(path)
                continue
            self._tallies.setdefault(path, KeyTally(path)).add(some)
            lengths = [length for value in some if (length := length_of(value)) is not None]
            self._lengths.setdefault(path, []).extend(lengths)

    def facts(self, read: Sampled) -> Columns:
        # Sorting is stable: keys that as many records have stay in the order in which they were seen.
        tallies = sorted(self._tallies.values(), key=lambda tally: -tally.count)
        found = tuple(map(self._column, tallies))
        return Columns(read.done, read.of, read.size, read.seed, found, len(self._left_out))

    def _column(self, tally: KeyTally) -> ColumnFacts:
        facts = tally.facts(max(self._whole, tally.count), exact=True, top=51)
        path = tuple(map(str, tally.path))
        lengths = lengths_in_bins(np.array(self._lengths[path], np.int64))
        numbers, label = tally.histograms()[1], facts.is_label
        return ColumnFacts(
            tally.path,
            tally.count,
            self._whole - self._there[path],
            facts.top if label else (),
            () if label or numbers is None else bars(numbers),
            () if label or lengths is None or numbers is not None else bars(lengths),
            _range(facts, self._lengths[path]),
        )


def _range(facts: KeyFacts, lengths: Sequence[int]) -> str:
    if facts.numbers is not None:
        least, most, unit = facts.numbers.least, facts.numbers.most, ""
    elif facts.lengths is not None:
        least, most = min(lengths), max(lengths)
        # Those of texts and of lists are not of one unit.
        one = len([name for name, _ in facts.types if name != "null"]) == 1
        unit = f" {facts.lengths.unit}" if one else " long"
        unit = unit.removesuffix("s") if one and most == 1 else unit
    else:
        return ""
    ends = [shown_number(least), shown_number(most)]
    return (" to ".join(ends) if ends[0] != ends[1] else ends[0]) + unit


def shown_number(value: float) -> str:
    """Return a number for people, in few digits.

    Example:
        >>> shown_number(3159.0), shown_number(0.123456), shown_number(12_345_678)
        ('3,159', '0.1235', '12,345,678')
    """
    if value == int(value) if abs(value) < _EXACT else False:
        return f"{int(value):,}"
    return f"{value:.4g}"


def bars(found: Histogram) -> tuple[ColumnBar, ...]:
    """Return a histogram in at most five bins, each made of as many neighbours.

    Example:
        >>> from seekable.viewer.facts.histogram import Histogram
        >>> [(bar.low, bar.high, bar.count) for bar in bars(Histogram((0, 1, 2, 3), (5, 0, 2), "log"))]
        [(0, 1, 5), (1, 2, 0), (2, 3, 2)]
    """
    together = -(-len(found.counts) // _MOST_BARS)
    out = []
    for first in range(0, len(found.counts), together):
        last = min(first + together, len(found.counts))
        ends = last == len(found.counts) and found.scale == "linear"
        out.append(ColumnBar(found.edges[first], found.edges[last], sum(found.counts[first:last]), ends))
    return tuple(out)
