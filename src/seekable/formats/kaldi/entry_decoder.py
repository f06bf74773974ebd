"""The decoder of the entries of Kaldi's tables, and their keys and shapes without their objects."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable.errors import (
    CorruptObject,
    CorruptRecord,
    DataNotFound,
    IndexStale,
    InvalidArgument,
    KaldiWarning,
    MissingDependency,
    PipeRefused,
)
from seekable.formats.kaldi.archive_scanner import ArchiveScanner
from seekable.formats.kaldi.entry_reader import entry_keys, fetch_named
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
from seekable.nodes.readahead import read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.contract import OnError
    from seekable.formats.kaldi.entry_reader import EntryReader
    from seekable.index.surveyor import Finder
    from seekable.nodes.files.leaf import FilesLeaf, Shapes
    from seekable.nodes.key import KeyOf
    from seekable.nodes.node import Leaf, Node
    from seekable.nodes.saving import Saving

_PREVIEW_BYTES = 80

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

    def shapes_of(self, node: Node) -> Shapes:
        """Return the shapes of objects in a dataset of entries; only headers are read."""
        return _shapes_of(node)

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
        preview = bytes(view[:_PREVIEW_BYTES])
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
        starts, ends = files.ranges(np.full(len(rows), file, np.int64), within)
        keys = entry_keys(entries.kind, mapped.view, starts, ends)
        ends_file = bool(len(rows)) and within[-1] == files.records[file] - 1
        if entries.kind == "ark" and ends_file and not entries.is_whole(mapped.view[starts[-1] : ends[-1]]):
            keys[-1] = b""
        return keys


def _shapes_of(node: Node) -> Shapes:
    """Return the shapes of a dataset's objects in epoch 0.

    Returns:
        An int64 array of shape (records, dimensions); a list of tuples if objects have different numbers of
        dimensions, or some record is a hole, for which it has None.

    Raises:
        InvalidArgument: records are not the entries of Kaldi's tables.
        EndlessDataset: the dataset has no end.
        CorruptRecord: an entry cannot be read.
    """
    size = known_size(node, "shapes()")
    shapes = with_leaves(node, _shapes_of_leaf, past_records=False)
    if shapes is None:
        message = f"shapes() is for entries of Kaldi's tables in some order, and {node!r} makes other records"
        raise InvalidArgument(message)
    arrays: list[NDArray[np.int64]] = []
    several: list[tuple[int, ...] | None] | None = None
    for start in range(0, size, _PLANNED):
        rows = np.arange(start, min(start + _PLANNED, size), dtype=np.int64)
        some = [None if pair is HOLE else pair[1] for _, found in read_rows(shapes, rows) for pair in found]
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


def _shapes_of_leaf(leaf: Leaf) -> Any:
    decoder = leaf.decoder if isinstance(leaf, FileSource) else None
    if isinstance(leaf, FileSource) and isinstance(decoder, EntryDecoder):
        return replace(leaf, decoder=decoder.wanting("shape"))
    message = f"shapes() is for entries of Kaldi's tables, and {leaf!r} is none: sk.open('scp:...') opens one"
    raise InvalidArgument(message)
