"""Searches data for rows that are equal.

Equal rows are found in one pass with bounded memory. Each row has a hash of 64 bits. Where there are many
rows, only one class of hashes is kept: those that are 0 modulo a power of two, which doubles when too many
are kept. Equal rows have equal hashes, so the rows of a value are all kept or all dropped, and the share of
duplicates among the kept rows estimates that of all rows.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import xxhash

from seekable.errors import CorruptRecord
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.graph import HOLE, known_size
from seekable.viewer.facts.json_documents import json_value
from seekable.viewer.facts.key_paths import path_text, values_at
from seekable.viewer.facts.reading import (
    RULE_OF_THREE,
    ResultPace,
    Share,
    file_pieces,
    ratio_error,
    read_rows,
    row_pieces,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.node import Node
    from seekable.viewer.facts.key_paths import KeyPath

    _Hashed = tuple[Int64s, NDArray[np.uint64], int]
    """Rows, their hashes, and the number of further rows that have none."""


MOST_GROUPS = 50
"""The most groups of equal rows that are kept: the largest ones."""

_MOST_ROWS = 20
_MOST_KEPT = 1 << 20
"""The most rows whose hashes are kept: 16 MB."""

_LINE_ENDS = b"\r\n"


@dataclass(frozen=True, slots=True)
class EqualRows:
    """A group of rows that are equal."""

    count: int
    rows: tuple[int, ...]
    """The first of them, at most 20."""


@dataclass(frozen=True, slots=True)
class Duplicates:
    """The rows that equal an earlier one; while the work goes on, among the first rows."""

    done: int
    """The number of rows that were read."""

    of: int
    """The number of all rows."""

    key: str
    """The key whose values are compared; empty if records are."""

    classes: int
    """The number of classes of hashes; the rows of one class were compared."""

    kept: int
    """The number of rows that were compared."""

    share: Share
    """The share of the rows that equal an earlier one, with its 95 % bounds; exact if there is one class."""

    groups: tuple[EqualRows, ...]
    """The largest groups of equal rows among those that were compared."""

    left_out: int
    """The number of rows that are corrupt, holes, or lack the key."""

    @property
    def made_of(self) -> str:
        """The records or the index that the figures come from."""
        first = (
            f"the first {self.done:,} of {self.of:,} rows" if self.done < self.of else f"all {self.of:,} rows"
        )
        if self.classes == 1:
            return f"exact, from {first}"
        return f"from {self.kept:,} of {first}: those of one of {self.classes:,} classes of hashes"

    def document(self) -> dict[str, Any]:
        """Return the facts as a JSON-safe dict."""
        return {
            "made_of": self.made_of,
            "done": self.done,
            "of": self.of,
            "unit": "rows",
            "key": json_value(self.key),
            "classes": self.classes,
            "kept": self.kept,
            "duplicates": self.share.document(),
            "groups": [{"count": group.count, "rows": list(group.rows)} for group in self.groups],
            "left_out": self.left_out,
        }


def duplicates(node: Node, *, path: KeyPath = ()) -> Generator[Duplicates]:
    """Yield the duplicates while all rows are read in their order; the last result covers all of them.

    Records of lines are compared by their bytes without the line end, others by their values.

    Args:
        node: the data, with a length.
        path: the key whose values are compared, as `path_of` returns it; records if it is empty.

    Raises:
        EndlessDataset: the node has no length.
        IndexStale: a file was changed after it was indexed.

    Example:
        >>> import seekable as sk
        >>> *_, found = duplicates(sk.from_sequence(["a", "b", "a", "a"])._node)
        >>> found.share.in_words(), found.groups, found.made_of
        ('50 %', (EqualRows(count=3, rows=(0, 2, 3)),), 'exact, from all 4 rows')
    """
    size = known_size(node, "duplicates")
    kept, pace, done, left_out = _KeptHashes(), ResultPace(), 0, 0
    for rows, hashes, others in _by_lines(node) if _is_lines(node) and not path else _by_values(node, path):
        kept.add(rows, hashes)
        done += rows.size + others
        left_out += others
        if done < size and pace.due():
            yield kept.found(done, size, path, left_out)
            pace.made()
    yield kept.found(size, size, path, left_out)


def _is_lines(node: Node) -> bool:
    """Return True if each record is the bytes of a line, or of several."""
    return isinstance(node, FileSource) and not node.decoder.reads_objects


def _by_lines(node: Node) -> Iterator[_Hashed]:
    """Yield rows with the hashes of their lines."""
    assert isinstance(node, FileSource)
    digest = xxhash.xxh3_64_intdigest
    for piece in file_pieces(node.files):
        raw, starts = piece.raw, piece.starts
        hashes = [
            digest(raw[start:end].rstrip(_LINE_ENDS)) for start, end in itertools.pairwise(starts.tolist())
        ]
        yield np.arange(piece.first, piece.first + len(hashes)), np.array(hashes, np.uint64), 0


def _by_values(node: Node, path: KeyPath) -> Iterator[_Hashed]:
    """Yield rows with the hashes of records, or of their values at a path, and how many have none."""
    size = known_size(node, "duplicates")
    for rows in row_pieces(0, size):
        hashes = [_hash_at(record, path) for record in read_rows(node, rows)]
        there = np.array([each is not None for each in hashes], np.bool_)
        known = np.array([each for each in hashes if each is not None], np.uint64)
        yield rows[there], known, rows.size - known.size


def _hash_at(record: Any, path: KeyPath) -> int | None:
    if record is HOLE or isinstance(record, CorruptRecord):
        return None
    values = values_at(record, path)
    if not values:
        return None
    return xxhash.xxh3_64_intdigest(_encoded(values if None in path else values[0]))


def _encoded(value: Any) -> bytes:
    """Return bytes that are equal for equal values."""
    try:
        return msgspec.msgpack.encode(value, enc_hook=_plain)
    except (TypeError, ValueError, OverflowError, UnicodeEncodeError):
        return repr(value).encode("utf-8", "backslashreplace")


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return [value.dtype.str, list(value.shape), value.tobytes()]
    return repr(value)


class _KeptHashes:
    """The hashes and the rows of one class."""

    def __init__(self) -> None:
        self._classes = 1
        self._hashes: list[NDArray[np.uint64]] = [np.empty(0, np.uint64)]
        self._rows: list[Int64s] = [np.empty(0, np.int64)]
        self._count = 0

    def add(self, rows: Int64s, hashes: NDArray[np.uint64]) -> None:
        """Keep the rows whose hash is of the class; make the class smaller when there are too many."""
        chosen = hashes & np.uint64(self._classes - 1) == 0
        self._hashes.append(hashes[chosen])
        self._rows.append(rows[chosen])
        self._count += self._hashes[-1].size
        while self._count > _MOST_KEPT:
            self._classes *= 2
            every, numbers = np.concatenate(self._hashes), np.concatenate(self._rows)
            chosen = every & np.uint64(self._classes - 1) == 0
            self._hashes, self._rows = [every[chosen]], [numbers[chosen]]
            self._count = self._hashes[0].size

    def found(self, done: int, of: int, path: KeyPath, left_out: int) -> Duplicates:
        """Return the duplicates among the rows that are kept."""
        hashes, rows = np.concatenate(self._hashes), np.concatenate(self._rows)
        self._hashes, self._rows = [hashes], [rows]
        order = np.argsort(hashes, kind="stable")
        ordered = rows[order]
        firsts = np.flatnonzero(_differs(hashes[order]))
        counts = np.diff(firsts, append=hashes.size)
        largest = np.lexsort((ordered[firsts], -counts))[:MOST_GROUPS]
        groups = [
            EqualRows(int(counts[at]), tuple(ordered[firsts[at] :][: min(counts[at], _MOST_ROWS)].tolist()))
            for at in largest.tolist()
            if counts[at] > 1
        ]
        share = _share(counts, exact=self._classes == 1)
        key = path_text(path) if path else ""
        return Duplicates(done, of, key, self._classes, hashes.size, share, tuple(groups), left_out)


def _differs(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return True for each hash that differs from the one before it, and for the first one."""
    differs = np.ones(hashes.size, np.bool_)
    differs[1:] = hashes[1:] != hashes[:-1]
    return differs


def _share(counts: Int64s, *, exact: bool) -> Share:
    """Return the share of duplicates, with bounds if a random part of the values was looked at.

    Args:
        counts: the number of rows of each value.
        exact: True if these are all values.
    """
    rows, values = int(counts.sum()), counts.size
    if not rows:
        return Share(0, 0, 0.0, 0.0 if exact else 1.0)
    extra = rows - values
    share = extra / rows
    if exact:
        return Share(extra, rows, share, share)
    if not extra:
        return Share(0, rows, 0.0, min(1.0, RULE_OF_THREE / values))
    # A value is drawn with all of its rows.
    error = ratio_error(counts - 1, counts)
    return Share(extra, rows, max(0.0, share - error), min(1.0, share + error))
