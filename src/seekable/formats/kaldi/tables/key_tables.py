"""Tables that find the extended filename of a key: a script in memory, and a table with an index on disk.

A script takes 18 bytes a line beside its text, which stays on disk if it is long. Its keys are hashed
thousands of lines at a time: a hash is the sum of the words of a key, of 8 bytes each, and of its length,
each with its own multiplier. Lines are sorted by hashes, and a directory has the first line of each run of
hashes with the same upper bits. A key is found by its hash, and compared with the line. No file has such
hashes.
"""

from __future__ import annotations

import io
import itertools
import operator
import os
import struct
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, final

import numpy as np

from seekable.errors import CorruptTable, IndexStale
from seekable.formats.kaldi.basic_types import decoded, encoded
from seekable.formats.kaldi.files.open_named import open_rx
from seekable.formats.kaldi.files.specifiers import check_rxfilename
from seekable.formats.kaldi.script_lines import (
    check_is_script,
    key_and_xfilename,
    line_blocks,
    line_key,
    split_line,
)
from seekable.formats.kaldi.tables.archive import KEY_AFTER_SPACES
from seekable.formats.kaldi.tables.script_objects import open_plain
from seekable.index.digest import key_hash
from seekable.index.key_files import (
    Keyed,
    descriptions,
    keys_of_entries,
    open_pairs,
    places,
    read_files,
    read_head,
    read_keys,
)
from seekable.index.opening import find_indexed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.files.specifiers import Rspecifier
    from seekable.formats.kaldi.holders.registry import Holder
    from seekable.index.fileset import FileSet
    from seekable.index.key_files import KeyIndex

_WORD: Final = 8
_LONGEST_KEY: Final = 256
"""Blocks with longer keys are parsed line by line."""

_MASK: Final = (1 << 64) - 1
_MULTIPLIERS: Final = tuple(
    (0x9E3779B97F4A7C15 * (2 * number + 1)) & _MASK for number in range(_LONGEST_KEY // _WORD)
)
_OF_LENGTH: Final = 0xD6E8FEB86659FD93
_WORDS: Final = tuple(struct.Struct(f"<{count}Q") for count in range(len(_MULTIPLIERS) + 1))
_LOW_BYTES: Final = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], np.uint64)
_HALF: Final = 32
_NEWLINE, _SPACE, _DELETE, _HIGHEST = 10, 32, 127, 255
_IS_SPACE: Final = np.array([byte in b"\t\n\r " for byte in range(_SPACE + 1)])
_BLOCK_BYTES: Final = 4 << 20
"""The bytes of lines that are parsed at once: their arrays stay in the caches of a processor."""

_KEPT_BYTES: Final = 16 << 20
"""The text of a longer regular file stays on disk."""

_LINE_BYTES: Final = 512
"""A line on disk is read by pieces of this size; few lines are longer."""

_BITS: Final = 64
_MOST_SPACES = 4096
_SPACES = b" \t\n\r"
_HEAD_BYTES: Final = 8 << 10
"""The bytes of an entry that are read to find the end of its key, beside the key."""


class _KeysOfBlock(NamedTuple):
    """The keys of the lines of a block."""

    starts: Int64s
    """The first byte of each line in the block."""

    hashes: NDArray[np.uint64]
    """The hash of each key."""

    disorder: int | None
    """The first line whose key is not higher than the one before; None if the keys ascend."""

    first: bytes
    """The key of the first line."""

    last: bytes
    """The key of the last line."""


def hash_of_key(key: bytes) -> int:
    r"""Return the hash of one key.

    Example:
        >>> block = keys_of_block(b"utt1 a.ark:5\nutt2 a.ark:9\n", 1, "demo")
        >>> block.hashes.tolist() == [hash_of_key(b"utt1"), hash_of_key(b"utt2")]
        True
    """
    count = (len(key) + _WORD - 1) // _WORD
    padded = key.ljust(_WORD * count, b"\0")
    if count < len(_WORDS):
        words, multipliers = _WORDS[count].unpack(padded), _MULTIPLIERS
    else:
        words = struct.unpack(f"<{count}Q", padded)
        multipliers = _MULTIPLIERS * (count // len(_MULTIPLIERS) + 1)
    total: int = sum(map(operator.mul, words, multipliers), len(key) * _OF_LENGTH) & _MASK
    return total ^ (total >> _HALF)


def keys_of_block(block: bytes, number: int, name: str) -> _KeysOfBlock:
    """Return the keys of some lines.

    Args:
        block: the lines, at least one; each has its end.
        number: the line number of the first one, from 1, for messages.
        name: the name of the script, for messages.

    Raises:
        CorruptTable: a line is empty, or has no filename, or its key has control characters.
    """
    data = np.frombuffer(block, np.uint8)
    blanks = np.flatnonzero(data <= _SPACE)
    kinds = data[blanks]
    ends = np.flatnonzero(kinds == _NEWLINE)
    # Of the blanks, the first one of a line is the end of its key, if the line does not begin with it.
    firsts = np.concatenate([[0], ends[:-1] + 1])
    starts = np.concatenate([[0], blanks[ends[:-1]] + 1])
    lengths = blanks[firsts] - starts
    has_filename = blanks[ends] - blanks[firsts] > ends - firsts
    is_plain = (
        bool(
            lengths.min() > 0
            and lengths.max() <= _LONGEST_KEY
            and has_filename.all()
            and _IS_SPACE[kinds].all()
        )
        and not ((data == _DELETE) | (data == _HIGHEST)).any()
    )
    if not is_plain:
        return _keys_of_lines(block, number, name)
    return _keys_of_plain_lines(block, starts, lengths)


def _keys_of_plain_lines(block: bytes, starts: Int64s, lengths: Int64s) -> _KeysOfBlock:
    padded = block + bytes(_WORD)
    every_word = np.ndarray((len(block) + 1,), "<u8", padded, strides=(1,))
    hashes = lengths.astype(np.uint64) * np.uint64(_OF_LENGTH)
    undecided = np.ones(len(starts) - 1, np.bool_)
    disorder = len(starts)
    for number, at in enumerate(range(0, int(lengths.max()), _WORD)):
        places = np.minimum(starts + at, len(block))
        words = every_word[places] & _LOW_BYTES[np.clip(lengths - at, 0, _WORD)]
        hashes += words * np.uint64(_MULTIPLIERS[number])
        if undecided.any():
            ordered = words.byteswap()
            falls = np.flatnonzero(undecided & (ordered[1:] < ordered[:-1]))
            disorder = min(disorder, int(falls[0]) + 1) if len(falls) else disorder
            undecided &= ordered[1:] == ordered[:-1]
    same = np.flatnonzero(undecided)
    disorder = min(disorder, int(same[0]) + 1) if len(same) else disorder
    hashes ^= hashes >> np.uint64(_HALF)
    first, last = (
        block[start : start + length]
        for start, length in zip(starts[[0, -1]].tolist(), lengths[[0, -1]].tolist(), strict=True)
    )
    return _KeysOfBlock(starts, hashes, disorder if disorder < len(starts) else None, first, last)


def _keys_of_lines(block: bytes, number: int, name: str) -> _KeysOfBlock:
    """Return the keys of lines of any kind, one after the other."""
    lines = block.split(b"\n")[:-1]
    keys = [split_line(line, at, name)[0] for at, line in enumerate(lines, number)]
    starts = np.cumsum([0, *(len(line) + 1 for line in lines[:-1])])
    hashes = np.array([hash_of_key(key) for key in keys], np.uint64)
    pairs = enumerate(itertools.pairwise(keys), 1)
    disorder = next((at for at, (one, two) in pairs if two <= one), None)
    return _KeysOfBlock(starts, hashes, disorder, keys[0], keys[-1])


class _KeptText:
    """The text of a script, in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def line(self, start: int) -> bytes:
        """Return the line that starts at a byte, without its end."""
        end = self._data.find(b"\n", start)
        return self._data[start : end if end >= 0 else len(self._data)]


class _TextOnDisk:
    """Text of a regular file, which is read by lines. The descriptor is closed with this object."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def line(self, start: int) -> bytes:
        found, size = b"", _LINE_BYTES
        while True:
            piece = os.pread(self._descriptor, size, start + len(found))
            line, end, _ = piece.partition(b"\n")
            found += line
            if end or not piece:
                return found
            size *= 8

    def __del__(self) -> None:
        os.close(self._descriptor)


@final
class ScriptTable:
    """The lines of a script by their keys. Safe from threads, and after a fork."""

    def __init__(
        self, name: str, text: _KeptText | _TextOnDisk, hashes: NDArray[np.uint64], starts: Int64s
    ) -> None:
        """Sort the lines by the hashes of their keys.

        Args:
            name: the extended filename of the script, for messages.
            text: the text of the script.
            hashes: the hash of the key of each line.
            starts: the first byte of each line.

        Raises:
            CorruptTable: two lines have the same key.
        """
        self._name = name
        self._text = text
        order = np.argsort(hashes)
        hashes, starts = hashes[order], starts[order]
        del order
        bits = max(1, len(hashes).bit_length() - 1)
        self._shift = _BITS - bits
        counts = np.bincount((hashes >> np.uint64(self._shift)).view(np.int64), minlength=1 << bits)
        # The items of a memoryview are numbers of Python, and come faster than those of an array.
        self._firsts = np.concatenate([[0], np.cumsum(counts)]).data
        self._hashes, self._starts = hashes.data, starts.data
        for place in np.flatnonzero(hashes[1:] == hashes[:-1]).tolist():
            self._check_unique(place)

    def _check_unique(self, place: int) -> None:
        """Raise an error if the key of a place is also that of a later one with the same hash."""
        key = self._key(place)
        other = place + 1
        while other < len(self._hashes) and self._hashes[other] == self._hashes[place]:
            if self._key(other) == key:
                first, second = sorted([self._starts[place], self._starts[other]])
                raise CorruptTable(
                    f"{self._name!r}: the key {decoded(key)!r} is there twice, at byte {first:,} and at byte "
                    f"{second:,}, so it cannot be looked up: make the keys unique, or read the script in its "
                    f"order"
                )
            other += 1

    def __len__(self) -> int:
        return len(self._hashes)

    def find(self, key: str) -> str | None:
        """Return the extended filename of a key, maybe with a range; None if no line has the key.

        Raises:
            CorruptTable: the file was changed, and another line is there.
        """
        raw = key.encode("utf-8", "surrogateescape")
        wanted = hash_of_key(raw)
        run = wanted >> self._shift
        hashes = self._hashes
        for place in range(self._firsts[run], self._firsts[run + 1]):
            if hashes[place] == wanted:
                # The line was checked when it was hashed; to check it again would double the time.
                fields = self._text.line(self._starts[place]).split(None, 1)
                if len(fields) > 1 and fields[0] == raw:
                    return fields[1].rstrip().decode("utf-8", "surrogateescape")
                self._check_unchanged(place)
        return None

    def _key(self, place: int) -> bytes:
        """Return the key of the line at a place of the arrays."""
        return line_key(self._text.line(self._starts[place]))

    def _check_unchanged(self, place: int) -> None:
        """Raise an error for a line that has another key than when it was hashed."""
        if hash_of_key(self._key(place)) != self._hashes[place]:
            raise CorruptTable(
                f"{self._name!r}: the line at byte {self._starts[place]:,} was changed after the script was "
                f"read: make a new reader"
            )


def load_script(rxfilename: str, *, is_sorted: bool, pipes: Pipes) -> ScriptTable:
    """Read all lines of a script, for look-ups.

    Args:
        rxfilename: the extended filename of the script.
        is_sorted: True if its keys must ascend, as option ``s`` promises.
        pipes: ``"allow"`` if it may be a command.

    Raises:
        CorruptTable: a line is none of a script, or a key is there twice, or the keys do not ascend.
        PipeFailed, InvalidArgument, PipeRefused, DataNotFound, ...: as in `open_rx`.
    """
    kept: list[bytes] | None = []
    starts, hashes, last = [], [], b""
    with open_rx(rxfilename, pipes=pipes) as file:
        check_is_script(file)
        raw = file.raw
        if isinstance(raw, io.FileIO) and os.fstat(raw.fileno()).st_size > _KEPT_BYTES:
            kept = None
        start = 0 if kept is not None else file.tell()
        for block, number in line_blocks(file, partial(file.read, _BLOCK_BYTES)):
            if not block.endswith(b"\n"):
                block += b"\n"  # noqa: PLW2901 - only the last line lacks its end
            keys = keys_of_block(block, number, rxfilename)
            if is_sorted:
                _check_sorted(keys, last, number, rxfilename)
            last = keys.last
            starts.append(keys.starts + start)
            start += len(block)
            hashes.append(keys.hashes)
            if kept is not None:
                kept.append(block)
        text: _KeptText | _TextOnDisk = (
            _TextOnDisk(os.dup(file.fileno())) if kept is None else _KeptText(b"".join(kept))
        )
    no_starts, no_hashes = np.zeros(0, np.int64), np.zeros(0, np.uint64)
    return ScriptTable(
        rxfilename, text, np.concatenate([no_hashes, *hashes]), np.concatenate([no_starts, *starts])
    )


def _check_sorted(keys: _KeysOfBlock, last: bytes, number: int, name: str) -> None:
    line = number if last and keys.first <= last else None
    if line is None and keys.disorder is not None:
        line = number + keys.disorder
    if line is not None:
        raise CorruptTable(
            f"{name!r}: the key of line {line:,} does not follow that of the line before, and option s says "
            f"that keys ascend, as with LC_ALL=C sort: sort the script, or leave the option out"
        )


@final
class _TableIndex:
    """The entries of one archive or script by key. Safe from threads and after fork."""

    def __init__(self, files: FileSet, keys: KeyIndex, first: int) -> None:
        """Take the index of a table; callers use `find_table_index`.

        Args:
            files: the one file.
            keys: the index of its keys, and maybe of those of other files.
            first: the row of its first entry in that index.
        """
        self._files = files
        self._keys = keys
        self._first = first
        self._count = int(files.records[0])

    def __len__(self) -> int:
        """Return the number of entries."""
        return self._count

    @property
    def is_whole(self) -> bool:
        """True if all entries can be found, and each has a key of its own; also in the files indexed with it.

        A reader of all the table says no of a key only then.
        """
        return self._keys.is_whole

    def ranges(self, key: str) -> list[tuple[int, int]]:
        """Return the first byte of each entry of a key, and the byte after the entry, in the file's order.

        The range of an entry of an archive begins with its key; that of a script is a line with its end.

        Raises:
            IndexStale: the file was changed after the index was found.
        """
        mapped = self._files.mapped(0)
        mapped.check()
        raw = encoded(key)
        found = []
        for row in self._keys.rows(key_hash(key)):
            number = row - self._first
            if not 0 <= number < self._count:
                continue
            start, stop = self._files.range(0, number)
            head = bytes(mapped.view[start : min(stop, start + len(raw) + _MOST_SPACES)]).lstrip()
            if head.startswith(raw) and head[len(raw) : len(raw) + 1] in _SPACES:
                found.append((start, stop))
        return found

    def close(self) -> None:
        """Close the file. It is opened again when a key is looked up."""
        self._files.close()


def find_table_index(path: str | os.PathLike[str], format_name: str) -> _TableIndex | None:
    r"""Return the index of an archive or a script, None if there is none that is valid; none is built.

    An index is valid if the file has the size and the modification time that it had when it was indexed.

    Args:
        path: the path of the file, which is not compressed.
        format_name: ``"scp"``, or ``"ark-"`` and the name of the holder.

    Raises:
        DataNotFound: there is no such file.

    Example:
        >>> import pathlib, tempfile, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "a.ark")
        ...     _ = path.write_bytes(b"utt1 7 \nutt2 8 \n")
        ...     before = find_table_index(path, "ark-int32")
        ...     _ = sk.open(path, format=sk.formats.Kaldi(holder="int32"))
        ...     before, find_table_index(path, "ark-int32").ranges("utt2")
        (None, [(8, 16)])
    """
    files = find_indexed(os.fspath(path), format_name=format_name)
    if files is None:
        return None
    keyed = Keyed.of(files, keys_of_entries(format_name))
    for folder in places(files, index_dir=None):
        if (keys := read_keys(folder, keyed)) is not None:
            return _TableIndex(files, keys, 0)
        if (found := _among_others(folder, keyed)) is not None:
            return _TableIndex(files, *found)
    return None


def _among_others(folder: str, keyed: Keyed) -> tuple[KeyIndex, int] | None:
    """Return an index of keys that covers the file, and the row of its first entry there."""
    wanted = keyed.contents[0], int(keyed.records[0])
    for path in descriptions(folder):
        head = read_head(path)
        if head is None or head.made != keyed.made:
            continue
        files, first = read_files(path) or (), 0
        for file in files:
            if (file.content, file.records) == wanted:
                records = sum(each.records for each in files)
                if (keys := open_pairs(folder, head, records=records)) is not None:
                    return keys, first
            first += file.records
    return None


@final
class IndexedTable:
    """The entries of an archive or a script by their keys. Safe from threads, and after a fork."""

    def __init__(self, index: _TableIndex, file: io.FileIO, path: str, *, is_script: bool) -> None:
        """Take an index, and a table that it describes.

        Args:
            index: the index of the table.
            file: the table. Its descriptor is duplicated.
            path: its path.
            is_script: True for a script, False for an archive.
        """
        self._index = index
        self._path = path
        self._is_script = is_script
        self._descriptor = os.dup(file.fileno())

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._index)

    def find(self, key: str) -> str | None:
        """Return the extended filename of the object of a key, maybe with a range; None without such a key.

        Raises:
            IndexStale: the table was changed after the reader was made.
        """
        ranges = self._index.ranges(key)
        if not ranges:
            return None
        ((start, stop),) = ranges
        if self._is_script:
            fields = key_and_xfilename(os.pread(self._descriptor, stop - start, start))
            if fields is not None:
                return decoded(fields[1])
        else:
            head = os.pread(self._descriptor, min(stop - start, len(key) * 4 + _HEAD_BYTES), start)
            if found := KEY_AFTER_SPACES.match(head):
                return f"{self._path}:{start + found.end()}"
        raise IndexStale(f"{self._path!r} was changed after it was opened: make a new reader")

    def __del__(self) -> None:
        """Close the descriptor of the table."""
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)


def find_indexed_table(specifier: Rspecifier, holder: Holder) -> IndexedTable | None:
    """Return a table that has a valid index of seekable; None for others.

    An index must answer as a reader of all entries would. So none is used where such a reader finds a damaged
    entry, or a key twice; with options ``o`` and ``s``, whose promises only a reader can check; and for
    archives with option ``p``, where a reader takes all entries after an unreadable one for missing.

    Args:
        specifier: the table.
        holder: reads its objects.
    """
    path = specifier.rxfilename
    is_script = specifier.kind == "scp"
    reads_all = specifier.once or specifier.sorted or (specifier.permissive and not is_script)
    if reads_all or check_rxfilename(path) != "file":
        return None
    file = open_plain(path)
    if file is None:
        return None
    with file:
        index = find_table_index(path, "scp" if is_script else f"ark-{holder.name}")
        if index is None or not index.is_whole:
            return None
        return IndexedTable(index, file, path, is_script=is_script)
