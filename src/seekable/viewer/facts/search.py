"""Searches the rows of data: for a text in their records, and for rows that are equal.

A row is found if one of its values, at any depth, is a text that contains the searched one, or bytes that
contain it in UTF-8. Names of keys and numbers are not searched, and upper and lower case differ.

All rows of files of lines are searched by the bytes of the files: for the text as it is typed, and as writers
of the format escape it. A record whose bytes contain it is decoded, which decides. A text is missed where a
writer of JSON escaped plain letters. All records of other formats are decoded.

Equal rows are found in one pass with bounded memory. Each row has a hash of 64 bits. Where there are many
rows, only one class of hashes is kept: those that are 0 modulo a power of two, which doubles when too many
are kept. Equal rows have equal hashes, so the rows of a value are all kept or all dropped, and the share of
duplicates among the kept rows estimates that of all rows.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeGuard

import msgspec
import numpy as np
import xxhash

from seekable.errors import CorruptRecord, InvalidArgument
from seekable.formats.lines.csv import dialect_of, spellings
from seekable.formats.lines.line_source import LineDecoder
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.graph import HOLE, known_size
from seekable.viewer.facts.json_documents import json_value
from seekable.viewer.facts.key_paths import path_text, values_at
from seekable.viewer.facts.reading import (
    NORMAL_95,
    RULE_OF_THREE,
    ResultPace,
    Share,
    bytes_of_records,
    file_pieces,
    from_all,
    from_sample,
    read_pieces,
    read_rows,
    sample_rows,
    share_of,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.nodes.files.decoders import Decoder
    from seekable.nodes.node import Node
    from seekable.viewer.facts.key_paths import KeyPath
    from seekable.viewer.facts.reading import FilePiece

    _Hashed = tuple[Int64s, NDArray[np.uint64], int]
    """Rows, their hashes, and the number of further rows that have none."""


MOST_HITS = 1000
"""The most rows that are kept; others are counted."""

_MOST_BYTES = 1024
_AROUND = 80
"""The characters that are shown before the text and after it."""

_ROWS_AT_ONCE = 512

_LAST_ASCII = 0x7F
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
"""What JSON has names for."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A row with the text."""

    row: int
    key: str
    """The path of the first value with it, as ``meta.lang``; ``[record]`` for that of a text itself."""

    before: str
    """What stands before it, at most 80 characters."""

    after: str
    """What follows it, at most 80 characters."""

    def document(self) -> dict[str, Any]:
        """Return the hit as a JSON-safe dict."""
        return {
            "row": self.row,
            "key": json_value(self.key),
            "before": json_value(self.before),
            "after": json_value(self.after),
        }


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The rows that were found; while the work goes on, those of the rows searched so far."""

    text: str
    done: int
    """What was searched, in the unit."""

    of: int
    """What there is to search, in the unit."""

    unit: str
    """``"rows"``, or ``"bytes"`` of files."""

    size: int
    """The number of all rows."""

    found: int
    """The number of rows with the text."""

    hits: tuple[Hit, ...]
    """The first rows that were found, at most 1,000."""

    corrupt: int
    """The number of rows that could not be decoded, of those for which that was tried."""

    made_of: str

    share: Share | None
    """The share of all rows that have the text, with bounds; None where all are searched."""

    def document(self) -> dict[str, Any]:
        """Return the search as a JSON-safe dict."""
        return {
            "text": json_value(self.text),
            "made_of": self.made_of,
            "done": self.done,
            "of": self.of,
            "unit": self.unit,
            "rows": self.size,
            "found": self.found,
            "share": None if self.share is None else self.share.document(),
            "corrupt": self.corrupt,
            "hits": [hit.document() for hit in self.hits],
        }


def search_sample(node: Node, text: str, *, n: int, seed: int = 0) -> Generator[SearchResult]:
    """Yield the rows with a text while a sample is searched; the last result covers all of it.

    Args:
        node: the data, with a length.
        text: the text, at most 1,024 bytes of UTF-8.
        n: the number of rows of the sample; all rows if there are fewer.
        seed: which sample.

    Raises:
        InvalidArgument: the text is empty or too long.
        IndexStale: a file was changed after it was indexed.

    Example:
        >>> import seekable as sk
        >>> *_, found = search_sample(sk.from_sequence(["a dog", "a cat"])._node, "cat", n=10)
        >>> found.found, found.hits[0].row, found.made_of
        (1, 1, 'exact, from all 2 rows')
    """
    return _in_sample(node, _Matches(text), n=n, seed=seed)


def search_all(node: Node, text: str) -> Generator[SearchResult]:
    """Yield the rows with a text while all rows are searched in their order.

    Args:
        node: the data, with a length.
        text: the text, at most 1,024 bytes of UTF-8.

    Raises:
        InvalidArgument: the text is empty or too long.
        IndexStale: a file was changed after it was indexed.

    Example:
        >>> import seekable as sk
        >>> *_, found = search_all(sk.from_sequence([{"a": ["b", "a cat"]}])._node, "cat")
        >>> found.hits[0].key, found.hits[0].before, found.done, found.unit
        ('a[]', 'a ', 1, 'rows')
    """
    return _in_all(node, _Matches(text))


class _Matches:
    """Collects the rows with a text."""

    def __init__(self, text: str) -> None:
        raw = text.encode("utf-8", "surrogatepass")
        if not 0 < len(raw) <= _MOST_BYTES:
            message = f"a search takes a text of 1 to {_MOST_BYTES:,} bytes (got {len(raw):,})"
            raise InvalidArgument(message)
        self.text, self.raw = text, raw
        self.count = self.corrupt = 0
        self.hits: list[Hit] = []

    def add(self, rows: Sequence[int], records: Sequence[Any]) -> None:
        """Search some decoded records for the text."""
        for row, record in zip(rows, records, strict=True):
            if isinstance(record, CorruptRecord):
                self.corrupt += 1
                continue
            if self._is_in(record):
                self.count += 1
                if len(self.hits) < MOST_HITS:
                    self.hits.append(self._hit(row, record))

    def result(
        self, done: int, of: int, unit: str, size: int, made_of: str, share: Share | None
    ) -> SearchResult:
        """Return what was found so far."""
        hits = tuple(self.hits)
        return SearchResult(self.text, done, of, unit, size, self.count, hits, self.corrupt, made_of, share)

    def _is_in(self, record: Any) -> bool:
        """Return True if a text of a record has the text in it."""
        waiting, text = [record], self.text
        while waiting:
            value = waiting.pop()
            kind = type(value)
            if kind is str:
                if text in value:
                    return True
            elif kind is dict:
                waiting += value.values()
            elif kind is list or kind is tuple:
                waiting += value
            elif kind is bytes and self.raw in value:
                return True
        return False

    def _hit(self, row: int, record: Any) -> Hit:
        """Return the first place of the text in a record that has it."""
        for path, value in _texts(record):
            if isinstance(value, str):
                before, there, after = value.partition(self.text)
                if there:
                    return Hit(row, path_text(path), before[-_AROUND:], after[:_AROUND])
            else:
                start, raw, end = value.partition(self.raw)
                if raw:
                    before, after = (
                        start[-_AROUND:].decode("utf-8", "replace"),
                        end[:_AROUND].decode("utf-8", "replace"),
                    )
                    return Hit(row, path_text(path), before, after)
        message = f"row {row} has no text {self.text!r}"
        raise AssertionError(message)


def _texts(record: Any) -> Iterator[tuple[KeyPath, str | bytes]]:
    """Yield the texts and the bytes of a record with their paths, in their order."""
    waiting: list[tuple[KeyPath, Any]] = [((), record)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str | bytes):
            yield path, value
        elif isinstance(value, dict):
            waiting += reversed([((*path, str(key)), below) for key, below in value.items()])
        elif isinstance(value, list | tuple):
            waiting += reversed([((*path, None), below) for below in value])


def _in_sample(node: Node, found: _Matches, *, n: int, seed: int) -> Generator[SearchResult]:
    size = known_size(node, "a search")
    rows = sample_rows(size, n, seed)
    pace, done = ResultPace(), 0

    def result() -> SearchResult:
        made_of = from_sample(done, of=size, seed=seed)
        share = share_of(found.count, done, exact=done >= size)
        return found.result(done, rows.size, "rows", size, made_of, share)

    for piece, records in read_pieces(node, rows):
        found.add(piece.tolist(), records)
        done += len(records)
        if done < rows.size and pace.due():
            yield result()
            pace.made()
    yield result()


def _in_all(node: Node, found: _Matches) -> Generator[SearchResult]:
    size = known_size(node, "a search")
    pace = ResultPace()
    if isinstance(node, FileSource) and _shows_texts(node.decoder):
        steps, unit = _by_bytes(node, node.decoder, found), "bytes"
    else:
        steps, unit = _by_rows(node, found), "rows"
    of, done = next(steps), 0
    for done in steps:
        if done < of and pace.due():
            yield found.result(done, of, unit, size, f"from the first {done:,} of {of:,} {unit}", None)
            pace.made()
    yield found.result(done, of, unit, size, from_all(datetime.now().astimezone()), None)


def _by_rows(node: Node, found: _Matches) -> Iterator[int]:
    """Yield how many rows there are, then how many were searched; all are decoded."""
    size = known_size(node, "a search")
    yield size
    for first in range(0, size, _ROWS_AT_ONCE):
        rows = np.arange(first, min(first + _ROWS_AT_ONCE, size))
        found.add(rows.tolist(), read_rows(node, rows))
        yield int(rows[-1]) + 1


def _shows_texts(decoder: Decoder) -> TypeGuard[LineDecoder]:
    """Return True if the bytes of records show what texts are in them."""
    if not isinstance(decoder, LineDecoder):
        return False
    return (decoder.plain or decoder).name in ("json", "text", "bytes") or decoder.headed


def _by_bytes(source: FileSource, decoder: LineDecoder, found: _Matches) -> Iterator[int]:
    """Yield how many bytes all records have, then how many were searched."""
    patterns, done = _patterns(decoder, found), 0
    yield bytes_of_records(source.files)
    for piece in file_pieces(source.files):
        rows = _candidates(piece, patterns)
        for begin in range(0, len(rows), _ROWS_AT_ONCE):
            some = piece.first + np.array(rows[begin : begin + _ROWS_AT_ONCE], np.int64)
            found.add(some.tolist(), read_rows(source, some))
        done += len(piece.raw)
        yield done


def _candidates(piece: FilePiece, patterns: Sequence[bytes]) -> list[int]:
    """Return the records of a piece whose bytes contain a pattern."""
    rows, raw, starts = set[int](), piece.raw, piece.starts.data
    for pattern in patterns:
        at = raw.find(pattern)
        while at >= 0:
            row = bisect_right(starts, at) - 1
            rows.add(row)
            at = raw.find(pattern, starts[row + 1])
    return sorted(rows)


def _patterns(decoder: LineDecoder, found: _Matches) -> list[bytes]:
    """Return the bytes that files of a format may have for the text."""
    if (decoder.plain or decoder).name == "json":
        return json_spellings(found.text)
    return spellings(found.text, dialect_of(decoder.form)) if decoder.form else [found.raw]


def json_spellings(text: str) -> list[bytes]:
    r"""Return the bytes that usual writers of JSON write for a text within a string.

    They leave letters that are not ASCII as they are, or escape them with small or large digits. Some escape
    ``/``, and some the letters that mean something in HTML.

    Example:
        >>> json_spellings('say "hi"')
        [b'say \\"hi\\"', b'say \\u0022hi\\u0022']
    """
    ways = itertools.product(("", "04x", "04X"), ("", "/"), ("", "<>&\u2028\u2029", "<>&'+`\""))
    return sorted(
        {"".join([_letter(each, *way) for each in text]).encode("utf-8", "surrogatepass") for way in ways}
    )


def _letter(letter: str, digits: str, slash: str, html: str) -> str:
    """Return a letter within a JSON string.

    Args:
        letter: one letter.
        digits: the format of the digits of letters that are not ASCII; empty leaves these as they are.
        slash: ``"/"`` if it is escaped by a backslash.
        html: letters that are written as digits.
    """
    code, form = ord(letter), digits or "04x"
    if letter in html:
        return f"\\u{code:{form}}"
    if letter in _ESCAPES or letter == slash:
        return _ESCAPES.get(letter, f"\\{letter}")
    if code < ord(" "):
        return f"\\u{code:{form}}"
    if code > _LAST_ASCII and digits:
        halves = np.frombuffer(letter.encode("utf-16-le", "surrogatepass"), "<u2").tolist()
        return "".join([f"\\u{half:{form}}" for half in halves])
    return letter


MOST_GROUPS = 50
"""The most groups of equal rows that are kept: the largest ones."""

_MOST_ROWS = 20
_MOST_KEPT = 1 << 20
"""The most rows whose hashes are kept: 16 MB."""

_HASHED_AT_ONCE = 1024
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
    for first in range(0, size, _HASHED_AT_ONCE):
        rows = np.arange(first, min(first + _HASHED_AT_ONCE, size))
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
    # The error of a ratio of two sums over values: a value is drawn with all of its rows.
    residuals = (counts - 1) - share * counts
    error = NORMAL_95 * math.sqrt(float((residuals**2).sum())) / rows
    return Share(extra, rows, max(0.0, share - error), min(1.0, share + error))
