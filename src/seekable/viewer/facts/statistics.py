"""The keys of records, their types and values, from a sample that grows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable._collector import collector_paused
from seekable.errors import CorruptRecord
from seekable.nodes.graph import known_size
from seekable.nodes.hole import HOLE
from seekable.viewer.facts.key_tally import KeyFacts, KeyTally
from seekable.viewer.facts.made_of import Share, from_sample, share_of
from seekable.viewer.facts.pace import Pace
from seekable.viewer.facts.sample import read_pieces, sample_rows

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from seekable.nodes.contract import Node
    from seekable.viewer.facts.key_paths import Path

__all__ = ["Statistics", "statistics"]

_MOST_KEYS = 500
_MOST_DEPTH = 16

_ELEMENTS = 16
"""Of each list so many elements are looked at, the first ones."""

_MOST_SHAPES = 10
_MOST_EXAMPLES = 20


@dataclass(frozen=True, slots=True)
class Statistics:
    """The keys of the records of a sample; while the work goes on, of the beginning of the sample."""

    done: int
    """The number of rows that were read."""

    of: int
    """The number of rows to read."""

    size: int
    """The number of all rows."""

    seed: int
    keys: tuple[KeyFacts, ...]
    """The facts of each key, in the order in which they were first seen; the record itself comes first."""

    left_out: int
    """The number of keys without facts: more than 500 were seen."""

    shapes: tuple[tuple[tuple[str, ...], Share], ...]
    """The sets of keys that records have at their top, the most frequent first, at most 10."""

    corrupt: Share
    corrupt_rows: tuple[int, ...]
    """The first corrupt rows that were met, at most 20."""

    holes: Share

    @property
    def made_of(self) -> str:
        """The records or the index that the figures come from."""
        return from_sample(self.done, of=self.size, seed=self.seed)

    def document(self) -> dict[str, Any]:
        """Return the statistics as a JSON-safe dict."""
        return {
            "made_of": self.made_of,
            "done": self.done,
            "of": self.of,
            "rows": self.size,
            "seed": self.seed,
            "keys": [key.document() for key in self.keys],
            "keys_left_out": self.left_out,
            "shapes": [{"keys": list(keys), **share.document()} for keys, share in self.shapes],
            "corrupt": {**self.corrupt.document(), "rows": list(self.corrupt_rows)},
            "holes": self.holes.document(),
        }


def statistics(node: Node, *, n: int, seed: int = 0) -> Generator[Statistics]:
    """Yield the statistics of more and more of a sample; the last ones are of all of it.

    Functions of the pipeline are called for the rows of the sample.

    Args:
        node: the data, or a pipeline, with a length.
        n: the number of rows of the sample; all rows if there are fewer.
        seed: which sample.

    Raises:
        EndlessDataset: the node has no length.
        IndexStale: a file was changed after it was indexed.

    Example:
        >>> import seekable as sk
        >>> records = sk.from_sequence([{"id": 1, "lang": "en"}, {"id": 2}])
        >>> *_, found = statistics(records.node, n=10)
        >>> [(key.path, key.present.in_words()) for key in found.keys[1:]], found.made_of
        ([(('id',), '100 %'), (('lang',), '50 %')], 'exact, from all 2 rows')
    """
    size = known_size(node, "statistics")
    rows = sample_rows(size, n, seed)
    survey, pace = _Survey(), Pace()
    for piece, records in read_pieces(node, rows):
        with collector_paused():
            survey.add(piece.tolist(), records)
        if survey.done < rows.size and pace.due():
            found = survey.facts(of=rows.size, size=size, seed=seed)
            pace.made()
            yield found
    yield survey.facts(of=rows.size, size=size, seed=seed)


class _Survey:
    """Counts the keys of records, piece by piece."""

    def __init__(self) -> None:
        self.done = 0
        self._tallies: dict[Path, KeyTally] = {(): KeyTally(())}
        self._parents: Counter[Path] = Counter()
        """For each path that ends in elements, the number of dicts among these."""
        self._left_out: set[Path] = set()
        self._shapes: Counter[frozenset[str]] = Counter()
        self._corrupt: list[int] = []
        self._corrupted = self._holes = 0

    def add(self, rows: Sequence[int], records: Sequence[Any]) -> None:
        """Count the keys of some records."""
        self.done += len(records)
        corrupt = [
            row for row, record in zip(rows, records, strict=True) if isinstance(record, CorruptRecord)
        ]
        self._corrupted += len(corrupt)
        self._corrupt += corrupt[: _MOST_EXAMPLES - len(self._corrupt)]
        self._holes += sum(record is HOLE for record in records)
        whole = [record for record in records if record is not HOLE and not isinstance(record, CorruptRecord)]
        self._shapes.update(frozenset(map(str, record)) for record in whole if type(record) is dict)
        self._descend((), whole)

    def facts(self, *, of: int, size: int, seed: int) -> Statistics:
        """Return the facts of what was counted."""
        exact, whole = self.done >= size, self.done - self._corrupted - self._holes
        shapes = [(tuple(sorted(keys)), count) for keys, count in self._shapes.most_common(_MOST_SHAPES)]
        return Statistics(
            done=self.done,
            of=of,
            size=size,
            seed=seed,
            keys=tuple(
                tally.facts(self._could_have(path, whole), exact=exact)
                for path, tally in self._tallies.items()
            ),
            left_out=len(self._left_out),
            shapes=tuple((keys, share_of(count, whole, exact=exact)) for keys, count in shapes),
            corrupt=share_of(self._corrupted, self.done, exact=exact),
            corrupt_rows=tuple(self._corrupt),
            holes=share_of(self._holes, self.done, exact=exact),
        )

    def _could_have(self, path: Path, records: int) -> int:
        """Return the number of records that could have a key; below lists, of elements."""
        if None not in path:
            return records
        last = len(path) - path[::-1].index(None)
        return self._tallies[path].count if last == len(path) else self._parents[path[:last]]

    def _descend(self, path: Path, values: Sequence[Any]) -> None:
        if not values or not self._counts(path):
            return
        self._tallies[path].add(values)
        if len(path) >= _MOST_DEPTH:
            return
        dicts = [value for value in values if type(value) is dict]
        if path and path[-1] is None:
            self._parents[path] += len(dicts)
        for key, below in _columns(dicts).items():
            self._descend((*path, str(key)), below)
        lists = [value[:_ELEMENTS] for value in values if type(value) is list or type(value) is tuple]
        self._descend((*path, None), [element for some in lists for element in some])

    def _counts(self, path: Path) -> bool:
        """Return True if the values of a path are counted."""
        if path in self._tallies:
            return True
        if len(self._tallies) > _MOST_KEYS:
            if len(self._left_out) < 100 * _MOST_KEYS:
                self._left_out.add(path)
            return False
        self._tallies[path] = KeyTally(path)
        return True


def _columns(dicts: Sequence[dict[Any, Any]]) -> dict[Any, list[Any]]:
    """Return the values of each key; dicts with the same keys in one order are taken apart together."""
    groups: dict[tuple[Any, ...], list[dict[Any, Any]]] = {}
    for each in dicts:
        groups.setdefault(tuple(each), []).append(each)
    out: dict[Any, list[Any]] = {}
    for keys, some in groups.items():
        for key, values in zip(keys, zip(*map(dict.values, some), strict=True), strict=True):
            out.setdefault(key, []).extend(values)
    return out
