"""The values of one key, from a sample that grows: types, lengths, numbers, and where it is unusual."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.errors import CorruptRecord
from seekable.nodes.graph import HOLE
from seekable.viewer.facts.key_paths import values_at
from seekable.viewer.facts.made_of import from_sample, share_of
from seekable.viewer.facts.statistics import KeyTally, surveyed, type_name

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from seekable.nodes.node import Node
    from seekable.viewer.facts.histogram import Histogram
    from seekable.viewer.facts.key_paths import KeyPath
    from seekable.viewer.facts.made_of import Share
    from seekable.viewer.facts.statistics import KeyFacts

MISSING, EMPTY = "missing", "empty"
"""The names of the rows without the key, and of those with an empty value, beside the names of types."""

_MOST_VALUES = 50
_MOST_EXAMPLES = 20


@dataclass(frozen=True, slots=True)
class FieldFacts:
    """The values of one key in a sample; while the work goes on, in the beginning of the sample."""

    done: int
    """The number of rows that were read."""

    of: int
    """The number of rows to read."""

    size: int
    """The number of all rows."""

    seed: int
    key: KeyFacts
    """``present`` is the share of the records that have the key."""

    lengths: Histogram | None
    numbers: Histogram | None
    rows: Mapping[str, tuple[int, ...]]
    """Rows of the sample, at most 20 each: by the name of a type, ``"missing"`` and ``"empty"``."""

    corrupt: Share

    @property
    def made_of(self) -> str:
        """The records or the index that the figures come from."""
        return from_sample(self.done, of=self.size, seed=self.seed)

    def document(self) -> dict[str, Any]:
        """Return the facts as a JSON-safe dict."""
        return {
            "made_of": self.made_of,
            "done": self.done,
            "of": self.of,
            "rows": self.size,
            "seed": self.seed,
            **self.key.document(),
            "histograms": {
                "lengths": None if self.lengths is None else self.lengths.document(),
                "numbers": None if self.numbers is None else self.numbers.document(),
            },
            "examples": {name: list(rows) for name, rows in self.rows.items()},
            "corrupt": self.corrupt.document(),
        }


def field(node: Node, path: KeyPath, *, n: int, seed: int = 0) -> Generator[FieldFacts]:
    """Yield the values of a key in a growing part of a sample; the last result is of all of it.

    Functions of the pipeline are called for the rows of the sample.

    Args:
        node: the data, or a pipeline, with a length.
        path: the key, as `path_of` returns it.
        n: the number of rows of the sample; all rows if there are fewer.
        seed: which sample.

    Raises:
        EndlessDataset: the node has no length.
        IndexStale: a file was changed after it was indexed.

    Example:
        >>> import seekable as sk
        >>> *_, found = field(sk.from_sequence([{"id": 1}, {"id": "2"}, {}]).node, ("id",), n=9)
        >>> found.key.present.in_words(), sorted(found.rows.items())
        ('67 %', [('int', (0,)), ('missing', (2,)), ('str', (1,))])
    """
    survey = _FieldSurvey(path)
    return surveyed(node, survey.add, survey.facts, n=n, seed=seed)


class _FieldSurvey:
    """Counts the values of one key, piece by piece."""

    def __init__(self, path: KeyPath) -> None:
        self.done = self._whole = self._with = 0
        self._path = path
        self._tally = KeyTally(path)
        self._rows: dict[str, list[int]] = {}

    def add(self, rows: Sequence[int], records: Sequence[Any]) -> None:
        """Count the values of some records."""
        self.done += len(records)
        found: list[Any] = []
        for row, record in zip(rows, records, strict=True):
            if record is HOLE or isinstance(record, CorruptRecord):
                continue
            values = values_at(record, self._path)
            self._whole += 1
            self._with += bool(values)
            self._note(row, values)
            found += values
        if found:
            self._tally.add(found)

    def facts(self, *, of: int, size: int, seed: int) -> FieldFacts:
        """Return the facts of what was counted."""
        exact = self.done >= size
        key = self._tally.facts(max(self._whole, self._tally.count), exact=exact, top=_MOST_VALUES)
        lengths, numbers = self._tally.histograms()
        return FieldFacts(
            self.done,
            of,
            size,
            seed,
            replace(key, present=share_of(self._with, self._whole, exact=exact)),
            lengths,
            numbers,
            {name: tuple(sorted(rows)) for name, rows in self._rows.items()},
            share_of(self.done - self._whole, self.done, exact=exact),
        )

    def _note(self, row: int, values: Sequence[Any]) -> None:
        """Note a row under each name that its values have."""
        names = set(map(type_name, values)) if values else {MISSING}
        if any(_is_empty(value) for value in values):
            names.add(EMPTY)
        for name in names:
            examples = self._rows.setdefault(name, [])
            if len(examples) < _MOST_EXAMPLES:
                examples.append(row)


def _is_empty(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return not value.size
    return isinstance(value, str | bytes | list | tuple | dict) and not value
