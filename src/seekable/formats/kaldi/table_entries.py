"""The entries of tables: where they start in an archive, and how one is decoded.

The headers of objects say where they end. The keys and shapes of entries are read without their objects.
"""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
import xxhash

from seekable.errors import (
    CorruptObject,
    CorruptRecord,
    CorruptTable,
    DataNotFound,
    IndexStale,
    InvalidArgument,
    KaldiWarning,
    MissingDependency,
    PipeRefused,
    UnsupportedFormat,
)
from seekable.formats.kaldi.basic_types import TOKEN
from seekable.formats.kaldi.cursor import END_OF_FILE, Cursor, MemoryCursor
from seekable.formats.kaldi.entry_reader import ENTRY, entry_keys, fetch_named
from seekable.formats.kaldi.holder_detection import candidates_of
from seekable.formats.kaldi.holders.registry import ObjectHolder, is_own
from seekable.formats.kaldi.script_lines import ScriptScanner
from seekable.formats.lines.line_source import line_span
from seekable.index.digest import text_key_hashes
from seekable.index.key_files import keys_of_entries
from seekable.nodes.bases import with_leaves
from seekable.nodes.files.byte_source import FileSource
from seekable.nodes.files.decoders import Decoder
from seekable.nodes.files.leaf import OwnKeys
from seekable.nodes.graph import HOLE, known_size
from seekable.nodes.key import Keys, entry_key, itself
from seekable.nodes.node import node_of
from seekable.nodes.readahead import read_rows
from seekable.storage.first_bytes import check_compression, refuse_foreign

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import DTypeLike, NDArray

    from seekable._typing import Int64s
    from seekable.formats.contract import OnError
    from seekable.formats.kaldi.entry_reader import EntryReader
    from seekable.formats.kaldi.holders.registry import Holder
    from seekable.index.finder import ByteSource, Finder
    from seekable.nodes.files.leaf import FilesLeaf
    from seekable.nodes.key import KeyOf
    from seekable.nodes.node import HoldsNode, LeafNode, Node
    from seekable.nodes.saving import Saving

    Shapes = NDArray[np.int64] | list[tuple[int, ...] | None]


_LEADING_SPACES = re.compile(rb"[ \t\n\r\f\v]*")
_PREVIEW_BYTES = 4096
_LONGEST_KEY = 1 << 20
_OF_KEYS = frozenset(range(0x21, 0xFF)) - {0x7F}
_BEHIND_KEYS = frozenset(b" \t\n\r")
_TAKEN_BEHIND_KEYS = frozenset(b" \t")
_SHOWN_BYTES = 24

_AT_ONCE = 1 << 16

_SPACES = b" \t\n\r\f\v"

_TORN_KEY = re.compile(TOKEN)


@final
class _ChunkCursor(Cursor):
    """A cursor over a source of bytes; one chunk is in memory at a time."""

    __slots__ = ("_at", "_base", "_chunks", "_data", "_end", "_size")

    def __init__(self, source: ByteSource) -> None:
        """Begin at the first byte of the source.

        Args:
            source: the bytes of a whole file.
        """
        self.name, self.key = "", None
        self._chunks = source.chunks()
        self._size = source.content_bytes
        self._data: bytearray | bytes = b""
        self._base = self._at = self._end = 0
        self._more()

    @property
    def position(self) -> int:
        """The number of bytes from the start of the file to the next byte."""
        return self._base + self._at

    @property
    def remaining(self) -> int | None:
        """The count of bytes from here to the end; None for a compressed file."""
        return None if self._size is None else max(self._size - self.position, 0)

    def peek(self) -> int:
        """Return the next byte without moving; -1 at the end of the file."""
        return self._data[self._at] if self._at < self._end or self._more() else -1

    def preview(self) -> bytes:
        """Return at most 4,096 of the next bytes without moving, at least one before the end."""
        if self._at == self._end:
            self._more()
        return bytes(self._data[self._at : min(self._at + _PREVIEW_BYTES, self._end)])

    def ahead(self, count: int) -> bytes:
        """Return the next `count` bytes without moving: fewer at the end of a chunk."""
        return bytes(self._data[self._at : min(self._at + count, self._end)])

    def take(self, count: int, what: str) -> bytes | bytearray:
        """Return the next `count` bytes, copied, and move past them."""
        at = self._at
        if 0 <= count <= self._end - at:
            self._at = at + count
            return bytes(memoryview(self._data)[at : at + count])
        self.check_count(count, what)
        found = bytearray()
        while len(found) < count:
            part = self._data[self._at : min(self._at + count - len(found), self._end)]
            if not part and not self._more():
                raise self.cut_error(count, len(found), what)
            self._at += len(part)
            found += part
        return found

    def skip(self, count: int, what: str) -> None:
        """Move past the next `count` bytes."""
        if 0 <= count <= self._end - self._at:
            self._at += count
            return
        self.check_count(count, what)
        left = count
        while left > self._end - self._at:
            left -= self._end - self._at
            self._at = self._end
            if not self._more():
                raise self.cut_error(count, count - left, what)
        self._at += left

    def array(self, dtype: DTypeLike, count: int, what: str, *, behind: int = 0) -> NDArray[Any]:
        """Return the next `count` items in memory of their own."""
        dtype = np.dtype(dtype)
        if behind:
            self.skip(behind, what)
        return np.frombuffer(self.take(dtype.itemsize * count, what), dtype)

    def through(self, mark: bytes) -> bytes:
        """Return all bytes through the next `mark`; without it, all that remain."""
        found = bytearray()
        while True:
            start, end = self._at, self._data.find(mark, self._at, self._end)
            self._at = self._end if end < 0 else end + 1
            found += memoryview(self._data)[start : self._at]
            if end >= 0 or not self._more():
                return bytes(found)

    def next_entry(self) -> int | None:
        """Move past whitespace; return the position of the next byte, None at the end of the file."""
        while True:
            found = _LEADING_SPACES.match(self._data, self._at, self._end)
            self._at = found.end() if found else self._at
            if self._at < self._end:
                return self._base + self._at
            if not self._more():
                return None

    def skip_key(self) -> bool:
        """Move past a key and the space after it; return False if none is here."""
        found = ENTRY.match(self._data, self._at, self._end)
        if found is not None and found.end() < self._end:
            self._at = found.end()
            return True
        length = 0
        while length < _LONGEST_KEY and (byte := self.peek()) in _OF_KEYS:
            self._at += 1
            length += 1
        if not length or byte not in _BEHIND_KEYS:
            return False
        self._at += byte in _TAKEN_BEHIND_KEYS
        return True

    def finish(self) -> None:
        """Read the rest of the file."""
        while self._more():
            pass

    def _more(self) -> bool:
        """Take the next chunk, after all of this one; return False at the end of the file."""
        chunk = next(self._chunks, None)
        if chunk is None:
            self._base, self._data, self._at, self._end = self._base + self._end, b"", 0, 0
            return False
        self._base, self._data, self._at, self._end = chunk.base, chunk.buffer, 0, chunk.size
        return True


@dataclass(frozen=True, slots=True)
class ArchiveScanner:
    """Finds the entries of an archive, whose holder finds the end of an object.

    Bytes from which on no entry can be found, of a torn or damaged archive, are the last record, which cannot
    be read.
    """

    form: str = "ark"
    """The name of the format."""

    holder: Holder | None = None

    splittable: bool = False
    """False: where an entry starts is known from the one before it."""

    @property
    def name(self) -> str:
        """The name in the index: ``ark-`` and the name of the holder; of the user's own, a digest too."""
        if self.holder is None or is_own(self.holder):
            return self.form
        kind = self.holder.kind if isinstance(self.holder, ObjectHolder) else type(self.holder)
        digest = xxhash.xxh3_64_hexdigest(
            f"{self.holder.name} {kind.__module__}.{kind.__qualname__}".encode()
        )
        return f"ark-user-{digest}"

    def check_head(self, head: bytes, path: str) -> None:
        """Check the first entry of a file.

        Raises:
            InvalidArgument: the archive has no holder.
            UnsupportedFormat: the first entry is not one of the holder.
        """
        check_compression(head, path)
        holder = self._holder()
        start = len(head) - len(head.lstrip(_SPACES))
        key = ENTRY.match(head, start)
        if key is None:
            refuse_foreign(head, path, what="an archive of Kaldi")
            if start < len(head) and not _TORN_KEY.fullmatch(head, start):
                shown = head[start : start + _SHOWN_BYTES]
                message = (
                    f"{path!r} is not an archive: expected a key and a space at byte {start}, found {shown!r}"
                )
                raise UnsupportedFormat(message)
            return
        cursor = MemoryCursor(head, name=path, key=str(key[1], "utf-8", "replace"), position=key.end())
        try:
            holder.skip(cursor)
        except CorruptTable as error:
            # An object may be longer than these first bytes, or be torn: then it is an error when it is read.
            is_cut = isinstance(error, CorruptObject) and END_OF_FILE in error.found
            if not is_cut:
                names = [name for name in candidates_of(head[key.end() :]) if name != holder.name]
                hint = f"; it looks like {' or '.join(names)}" if names else ""
                message = f"{path!r} is not an archive of the holder {holder.name!r}{hint}: {error}"
                raise UnsupportedFormat(message) from error

    def scan(self, source: ByteSource) -> NDArray[np.uint64]:
        """Return the offsets of the keys, uint64."""
        holder, cursor = self._holder(), _ChunkCursor(source)
        starts: list[int] = []
        found: list[NDArray[np.uint64]] = []
        while (start := cursor.next_entry()) is not None:
            starts.append(start)
            if not cursor.skip_key() or not _skip(holder, cursor):
                break
            if len(starts) == _AT_ONCE:
                found.append(np.array(starts, np.uint64))
                starts.clear()
        cursor.finish()
        return np.concatenate([*found, np.array(starts, np.uint64)])

    def _holder(self) -> Holder:
        if self.holder is None:
            raise InvalidArgument(
                "an archive needs a holder: say sk.formats.Kaldi(holder=...), "
                "or format='ark-matrix' and the like"
            )
        return self.holder


def _skip(holder: Holder, cursor: Any) -> bool:
    """Move past an object; return False if none is there."""
    try:
        holder.skip(cursor)
    except CorruptTable:
        return False
    return True


_SEEN_BYTES = 80

_PLANNED = 1 << 16
"""The rows whose shapes are planned together."""

_NEVER_LEFT_OUT = (InvalidArgument, PipeRefused, MissingDependency)
"""Errors of many entries, which the user can end; as in Kaldi, also a range that an object does not have."""


@final
@dataclass(frozen=True, slots=True)
class EntryDecoder(Decoder):
    """Decodes an entry of an archive, or the object that a line of a script names."""

    entries: EntryReader
    name: str = field(init=False)
    fast: Callable[[memoryview], Any] = field(init=False)
    recover: None = field(init=False, default=None)
    function: None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Look up the function of the reader once, because each record is read by it."""
        object.__setattr__(self, "name", self.entries.holder.name)
        object.__setattr__(self, "fast", self.entries.read)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the reader alone."""
        return EntryDecoder, (self.entries,)

    def wanting(self, wanted: Any) -> EntryDecoder:
        """Return a decoder of the key, the shape or the object of each entry."""
        return EntryDecoder(replace(self.entries, wanted=wanted))

    @property
    def needs_head_only(self) -> bool:
        """True for an archive of whose entries the object is not read."""
        return self.entries.kind == "ark" and self.entries.wanted != "object"

    @property
    def reads_objects(self) -> bool:
        """True."""
        return True

    @property
    def names_objects(self) -> bool:
        """True for scripts."""
        return self.entries.kind == "scp"

    def span(self, view: memoryview) -> int:
        """Return the length of an entry or line."""
        return len(view) if self.entries.kind == "ark" else line_span(view)

    def as_json(self, into: Saving) -> dict[str, Any]:
        """Return the holder; not pipes: whoever opens a pipeline file decides if commands are run."""
        return {"holder": self.name, "permissive": self.entries.permissive}

    def described(self, describe: Callable[..., dict[str, Any]], version: str | int | None) -> Any:
        """Return the name of the holder, and the version of its code if there is one."""
        return self.name if version is None else {"holder": self.name, "version": version}

    def finder(self, form: str) -> Finder:
        """Return the scanner of archives or scripts with the holder."""
        holder = self.entries.holder
        return ArchiveScanner(form, holder) if self.entries.kind == "ark" else ScriptScanner(form, holder)

    def fetch_named(self, views: Iterable[memoryview]) -> list[object]:
        """Fetch the objects of stores that lines name, unless their keys alone are read."""
        return [] if self.entries.wanted == "key" else fetch_named(self.entries, map(bytes, views))

    def close(self) -> None:
        """Close the files that lines name."""
        self.entries.files.close()

    def own_keys(self, source: FilesLeaf) -> OwnKeys:
        """Return the keys of entries."""
        return _EntryKeys(source, self)

    def recovered(
        self, errors: OnError | None, view: memoryview, error: Exception, *, path: str, row: int, offset: int
    ) -> Any:
        """Return an entry whose file lies beside its script, or what is delivered instead of an entry.

        Raises:
            CorruptRecord: the entry cannot be read, and nothing is delivered instead.
            IndexStale: a file was changed.
        """
        if isinstance(error, IndexStale):
            raise error
        if isinstance(error, DataNotFound) and self.entries.folder is None:
            try:
                return replace(self.entries, folder=os.path.dirname(path)).read(view)
            except Exception as again:  # noqa: BLE001 - holders of users may raise anything; the cause is kept
                error = again
        if isinstance(error, CorruptObject) and not error.path:
            error = CorruptObject(path, error.key, offset + error.offset, error.expected, error.found)
        preview = bytes(view[:_SEEN_BYTES])
        length = self.span(view)
        corrupt = CorruptRecord(path, row, offset=offset, length=length, preview=preview, cause=error)
        corrupt.__cause__ = error
        if errors is not None:
            return errors(corrupt)
        if not self.entries.permissive or isinstance(error, _NEVER_LEFT_OUT):
            raise corrupt
        message = f"{path}: record {row} at byte {offset} is left out: {type(error).__name__}: {error}"
        warnings.warn(message, KaldiWarning, stacklevel=2)
        return HOLE


@final
@dataclass(frozen=True, slots=True)
class _EntryKeys(OwnKeys):
    """The keys of the entries of a source; no object is read for them."""

    source: FilesLeaf
    decoder: EntryDecoder

    @property
    def of(self) -> KeyOf:
        """The function that takes the key of an entry."""
        return entry_key

    def described(self) -> dict[str, Any]:
        """Return the format that finds entries."""
        return keys_of_entries(self.source.files.entry(0).format)

    def hashes(self, rows: Int64s) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Return the hash of the key of each row, and False where an entry has none."""
        files = np.searchsorted(self.source.files.starts, rows, side="right") - 1
        keys = [key for file in np.unique(files).tolist() for key in self._of_file(file, rows[files == file])]
        return text_key_hashes(keys), np.fromiter(map(bool, keys), np.bool_, len(keys))

    def key_at(self, row: int) -> str:
        """Return the key of a row."""
        file = int(np.searchsorted(self.source.files.starts, row, side="right")) - 1
        return os.fsdecode(self._of_file(file, np.array([row], np.int64))[0])

    def alone(self, keys: Keys) -> Node:
        """Return the source whose records are the keys."""
        fields: dict[str, Any] = {"decoder": self.decoder.wanting("key"), "keys": Keys(itself, keys.index)}
        return replace(self.source, **fields)  # type: ignore[type-var]  # it is a source with a decoder

    def _of_file(self, file: int, rows: Int64s) -> list[bytes]:
        """Return the keys of consecutive entries of one file; an empty key for an entry that has none.

        The entry that a damaged archive ends in has none either: it may hide any number of others.
        """
        entries, files = self.decoder.entries, self.source.files
        mapped = files.mapped(file)
        mapped.check()
        within = rows - files.starts[file]
        starts, ends = files.words(np.full(len(rows), file, np.int64), within)
        keys = entry_keys(entries.kind, mapped.view, starts, ends)
        ends_file = bool(len(rows)) and within[-1] == files.records[file] - 1
        if entries.kind == "ark" and ends_file and not entries.is_whole(mapped.view[starts[-1] : ends[-1]]):
            keys[-1] = b""
        return keys


def shapes(dataset: HoldsNode) -> Shapes:
    r"""Return the shapes of the objects of Kaldi's tables in epoch 0; only their headers are read.

    Objects in text, compressed files and output of commands have no header, and are read for it.

    Args:
        dataset: entries of Kaldi's tables, in some order.

    Returns:
        An int64 array of shape (records, dimensions), such as the rows and columns of each matrix; if not all
        objects have as many dimensions, a list of tuples. Then a hole has None.

    Raises:
        InvalidArgument: records are not the entries of Kaldi's tables.
        EndlessDataset: the dataset has no end.
        CorruptRecord: an entry cannot be read.

    Example:
        >>> import pathlib, tempfile, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "a.ark").write_bytes(b"utt1 [ 1 2 ]\nutt2 [ 3 ]\n")
        ...     ds = sk.open(folder, format=sk.formats.Kaldi(holder="vector"))
        ...     sk.kaldi.shapes(ds).tolist()
        [[2], [1]]
    """
    node = node_of(dataset)
    size = known_size(node, "shapes()")
    alone = with_leaves(node, _shapes_of_leaf, past_records=False)
    if alone is None:
        message = f"shapes() is for entries of Kaldi's tables in some order, and {node!r} makes other records"
        raise InvalidArgument(message)
    arrays: list[NDArray[np.int64]] = []
    several: list[tuple[int, ...] | None] | None = None
    for start in range(0, size, _PLANNED):
        rows = np.arange(start, min(start + _PLANNED, size), dtype=np.int64)
        some = [None if pair is HOLE else pair[1] for _, found in read_rows(alone, rows) for pair in found]
        dims = {None if shape is None else len(shape) for shape in some}
        if several is None and (None in dims or len(dims) > 1 or (arrays and dims != {arrays[0].shape[1]})):
            several = [tuple(shape) for array in arrays for shape in array.tolist()]
        if several is None:
            arrays.append(np.array(some, dtype=np.int64))
        else:
            several += some
    if several is not None:
        return several
    return np.concatenate(arrays) if arrays else np.empty((0, 0), dtype=np.int64)


def _shapes_of_leaf(leaf: LeafNode) -> Any:
    decoder = leaf.decoder if isinstance(leaf, FileSource) else None
    if isinstance(leaf, FileSource) and isinstance(decoder, EntryDecoder):
        return replace(leaf, decoder=decoder.wanting("shape"))
    message = f"shapes() is for entries of Kaldi's tables, and {leaf!r} is none: sk.open('scp:...') opens one"
    raise InvalidArgument(message)
