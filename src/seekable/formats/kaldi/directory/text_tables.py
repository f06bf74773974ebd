"""The text tables of a data directory: the form of their lines, and a scan that finds their problems.

A line is a key, spaces or tabs, and the rest. A form is an expression for one whole line with its line end;
its quantifiers are possessive, so that a match takes time in proportion to the bytes.

A scan looks at a block of lines at a time: one expression matches all lines of a block that is as it should
be. Lines are gone through one by one only in blocks where it does not match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from math import inf
from operator import lt
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import xxhash

from seekable.formats.kaldi.basic_types import TOKEN
from seekable.formats.kaldi.files.store_files import open_readable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    UInt64s = NDArray[np.uint64]

_Keyed = Literal["utterance", "recording", "speaker"]
"""The kinds of things that the keys of tables name."""

_GAP: Final = rb"[ \t]++"
_WORD: Final = rb"[^\s\0]++"
_REST: Final = rb"[^\s\0][^\n\0]*+"
_NUMBER: Final = rb"\+?(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?+"
Level = Literal["error", "warning"]
"""An error keeps the directory from being opened; a warning is advice."""

_READ_BYTES: Final = 1 << 20
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SHOWN_BYTES: Final = 60
_MOST_LINES: Final = 5
"""The lines of a file that are reported for one problem; the rest is counted."""

_KEYS: Final = re.compile(rb"^[^ \t\n]*", re.MULTILINE)
_WORDS: Final = re.compile(rb"^([^ \t\n]*)[ \t]+([^ \t\n]+)", re.MULTILINE)

_SORTING: Final = "sort all tables by bytes, as `LC_ALL=C sort` and Kaldi's utils/fix_data_dir.sh do"


@dataclass(frozen=True)
class _TextTable:
    """A text table of a data directory."""

    name: str
    """The name of the file."""

    keyed: _Keyed
    """The kind of things that its keys name; without segments, each utterance is a recording of its own."""

    shown: str
    """The form of a line, in words for messages."""

    rest: bytes = field(repr=False)
    """The expression for what follows the key and the gap."""

    may_be_empty: bool = False
    """True if a line may have the key alone."""

    between: tuple[float, float] | None = None
    """The bounds of numbers, exclusive; None for a table of other things."""

    @cached_property
    def line(self) -> re.Pattern[bytes]:
        """The expression for one line with its line end."""
        return re.compile(self._line)

    @cached_property
    def lines(self) -> re.Pattern[bytes]:
        """The expression for any number of lines."""
        return re.compile(rb"(?:" + self._line + rb")*+")

    @property
    def _line(self) -> bytes:
        rest = _GAP + self.rest
        if self.may_be_empty:
            rest = rb"(?:" + rest + rb")?+"
        return TOKEN + rest + rb"[ \t]*+\n"


_POSITIVE: Final = (0.0, inf)
_WARPS: Final = (0.5, 1.5)

TABLES: Final = MappingProxyType(
    {
        table.name: table
        for table in (
            _TextTable(
                "segments",
                "utterance",
                "UTTERANCE RECORDING START END, in seconds, maybe followed by the number of a channel",
                _WORD
                + _GAP
                + _NUMBER
                + _GAP
                + rb"(?:-1(?:\.0*+)?|"
                + _NUMBER
                + rb")(?:"
                + _GAP
                + rb"[0-9]++)?+",
            ),
            _TextTable("wav.scp", "recording", "RECORDING, and a file or a command", _REST),
            _TextTable("feats.scp", "utterance", "UTTERANCE FILE", _REST),
            _TextTable("text", "utterance", "UTTERANCE WORD ...", _REST, may_be_empty=True),
            _TextTable("utt2spk", "utterance", "UTTERANCE SPEAKER", _WORD),
            _TextTable("utt2dur", "utterance", "UTTERANCE SECONDS, above 0", _NUMBER, between=_POSITIVE),
            _TextTable(
                "utt2num_frames", "utterance", "UTTERANCE FRAMES, an integer above 0", rb"0*+[1-9][0-9]*+"
            ),
            _TextTable("utt2lang", "utterance", "UTTERANCE LANGUAGE", _WORD),
            _TextTable("utt2uniq", "utterance", "UTTERANCE UTTERANCE", _WORD),
            _TextTable(
                "utt2warp", "utterance", "UTTERANCE WARP, above 0.5 and below 1.5", _NUMBER, between=_WARPS
            ),
            _TextTable("vad.scp", "utterance", "UTTERANCE FILE", _REST),
            _TextTable("spk2utt", "speaker", "SPEAKER UTTERANCE ...", _REST),
            _TextTable("spk2gender", "speaker", "SPEAKER, and m or f", rb"[mf]"),
            _TextTable(
                "spk2warp", "speaker", "SPEAKER WARP, above 0.5 and below 1.5", _NUMBER, between=_WARPS
            ),
            _TextTable("cmvn.scp", "speaker", "SPEAKER FILE", _REST),
            _TextTable("reco2dur", "recording", "RECORDING SECONDS, above 0", _NUMBER, between=_POSITIVE),
            _TextTable(
                "reco2file_and_channel",
                "recording",
                "RECORDING FILE CHANNEL, where the channel is A or B",
                _WORD + _GAP + rb"[AB1]",
            ),
        )
    }
)
"""The text tables that are known, by name. Other files of a data directory are not looked at."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a data directory.

    Example:
        >>> print(Problem("error", "data/train/text", 3, "the line is blank: remove it"))
        error: 'data/train/text', line 3: the line is blank: remove it
    """

    level: Level
    """The weight: an error keeps the directory from being opened, a warning does not."""

    path: str
    """The path of the file, or of the directory where a file is missing."""

    line: int | None
    """The line number, from 1; None for a problem of the whole file."""

    message: str
    """The words that say what is wrong, and what to do."""

    def __str__(self) -> str:
        """Return the level, the place, what is wrong, and what to do, in one line."""
        line = "" if self.line is None else f", line {self.line:,}"
        return f"{self.level}: {self.path!r}{line}: {self.message}"


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines of a file, each with one newline after it and no carriage return before that."""

    numbers: Sequence[int]
    """The line numbers in the file, from 1."""

    data: bytes

    @property
    def keys(self) -> list[bytes]:
        """The first word of each line; of a line that begins with white space, an empty one."""
        return _KEYS.findall(self.data[:-1]) if self.data else []

    @property
    def words(self) -> list[tuple[bytes, bytes]]:
        """The first two words of each line that has two."""
        return _WORDS.findall(self.data)

    @property
    def lines(self) -> list[bytes]:
        """The lines, without their ends."""
        return self.data[:-1].split(b"\n") if self.data else []


@dataclass(slots=True)
class ProblemLines:
    """The lines of a file that have one problem."""

    first: list[tuple[int, str]] = field(default_factory=list)
    """The number and the message of the first ones."""

    count: int = 0
    """The number of all lines with the problem."""

    def add(self, line: int, message: str) -> None:
        """Add a line with its message."""
        self.count += 1
        if len(self.first) < _MOST_LINES:
            self.first.append((line, message))

    def problems(self, level: Level, path: str) -> Iterator[Problem]:
        """Yield a problem for each of the first lines, and then one that counts the others.

        Args:
            level: the level of all.
            path: the path of the file.
        """
        for line, message in self.first:
            yield Problem(level, path, line, message)
        if more := self.count - len(self.first):
            ending = "lines have" if more > 1 else "line has"
            yield Problem(
                level, path, None, f"{more:,} more {ending} the problem of line {self.first[-1][0]:,}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class ScannedTable:
    """A text table that was read once."""

    table: _TextTable
    path: str

    keys: UInt64s
    """The hash of the key of each line."""

    second: UInt64s
    """The hash of the second word of each line; empty if it was not wanted."""

    problems: tuple[Problem, ...]
    """The problems that the table has by itself."""


def scan_table(
    table: _TextTable, path: str, *, second: bool = False, look: Callable[[LineBlock], None] | None = None
) -> ScannedTable:
    """Read a text table, and return the hashes of its keys and its problems.

    Args:
        table: the table.
        path: the path of the file.
        second: True to hash the second word of each line too.
        look: is called with each block, for checks of this table alone.
    """
    ends: dict[str, int] = {}
    keys, seconds = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    malformed, disordered, repeated, outside = ProblemLines(), ProblemLines(), ProblemLines(), ProblemLines()
    last = b""
    for block in blocks_of(path, ends):
        some = block.keys
        good = block if table.lines.fullmatch(block.data) else _well_formed(table, block, malformed)
        if not (last < some[0] and all(map(lt, some, islice(some, 1, None)))):
            last = _find_disordered(last, zip(block.numbers, some, strict=True), disordered, repeated)
        else:
            last = some[-1]
        keys.append(hashes_of(some))
        if table.between is not None:
            _find_outside(table, good, outside)
        if second:
            seconds.append(hashes_of(word for _, word in good.words))
        if look is not None:
            look(good)
    hashes = np.concatenate(keys)
    if disordered.count:
        repeated = _find_repeated(path, hashes)
    found = [*_ends_problems(path, ends)]
    for lines in (malformed, outside, disordered, repeated):
        found.extend(lines.problems("error", path))
    if not len(hashes):
        message = f"it is empty: remove it, or write a line {table.shown} for each {table.keyed}"
        found.append(Problem("error", path, None, message))
    return ScannedTable(table, path, hashes, np.concatenate(seconds), tuple(found))


def blocks_of(path: str, ends: dict[str, int]) -> Iterator[LineBlock]:
    """Yield the lines of a file, a megabyte at a time.

    Args:
        path: the path of the file.
        ends: receives ``returns``, the number of carriage returns that ended lines, and ``open``, 1 if the
            last line has no line end.
    """
    parts: list[bytes] = []
    first = 1
    with open_readable(path) as file:
        if file.read(len(_BYTE_ORDER_MARK)) != _BYTE_ORDER_MARK:
            file.seek(0)
        while data := file.read(_READ_BYTES):
            cut = data.rfind(b"\n") + 1
            if cut:
                whole = b"".join([*parts, data[:cut]])
                parts.clear()
                count = whole.count(b"\n")
                yield LineBlock(range(first, first + count), _without_returns(whole, ends))
                first += count
            if cut < len(data):
                parts.append(data[cut:])
    if parts:
        ends["open"] = 1
        yield LineBlock([first], _without_returns(b"".join([*parts, b"\n"]), ends))


def _without_returns(data: bytes, ends: dict[str, int]) -> bytes:
    """Return lines without the carriage returns before their ends."""
    if b"\r\n" not in data:
        return data
    ends["returns"] = ends.get("returns", 0) + data.count(b"\r\n")
    return data.replace(b"\r\n", b"\n")


def hashes_of(words: Iterable[bytes]) -> UInt64s:
    """Return the xxh3_64 of each word."""
    return np.array([*map(xxhash.xxh3_64_intdigest, words)], np.uint64)


def shown(data: bytes) -> str:
    r"""Return bytes as messages show them: as text where they are text, and cut.

    Example:
        >>> shown(b"utt1"), shown(bytes(70))[-8:]
        ("'utt1'", "\\x00'...")
    """
    cut = data[:_SHOWN_BYTES]
    try:
        text = repr(cut.decode())
    except UnicodeDecodeError:
        text = repr(cut)
    return text if len(data) <= _SHOWN_BYTES else f"{text}..."


def places_of(path: str, hashes: UInt64s, *, word: int = 0) -> Iterator[tuple[int, bytes]]:
    """Find the words of a table by their hashes; yield the line and the word.

    Args:
        path: the path of the table.
        hashes: the hashes.
        word: the index of the words in their lines, 0 or 1.
    """
    if not len(hashes):
        return
    wanted = set(hashes.tolist())
    for block in blocks_of(path, {}):
        for number, line in zip(block.numbers, block.lines, strict=True):
            words = line.split(None, word + 1)
            if len(words) > word and xxhash.xxh3_64_intdigest(words[word]) in wanted:
                yield number, words[word]


def _well_formed(table: _TextTable, block: LineBlock, malformed: ProblemLines) -> LineBlock:
    """Return the lines of a block that have the form of a table, and add the others to ``malformed``."""
    numbers, lines = [], []
    for number, line in zip(block.numbers, block.lines, strict=True):
        if table.line.fullmatch(line + b"\n"):
            numbers.append(number)
            lines.append(line + b"\n")
        elif not line.strip():
            malformed.add(number, "the line is blank: remove it")
        elif line[:1].isspace():
            malformed.add(number, f"the line begins with white space: {shown(line)}; remove that")
        else:
            malformed.add(number, f"expected {table.shown}, found {shown(line)}")
    return LineBlock(numbers, b"".join(lines))


def _find_outside(table: _TextTable, block: LineBlock, found: ProblemLines) -> None:
    """Find the numbers that are not between the bounds of a table, in lines that have the form."""
    assert table.between is not None
    low, high = table.between
    words = block.words
    numbers = np.array([word for _, word in words], np.bytes_).astype(np.float64)
    for at in np.flatnonzero(~((low < numbers) & (numbers < high))).tolist():
        key, word = words[at]
        found.add(block.numbers[at], f"expected {table.shown}, found {shown(key + b' ' + word)}")


def _find_disordered(
    last: bytes, keys: Iterable[tuple[int, bytes]], disordered: ProblemLines, repeated: ProblemLines
) -> bytes:
    """Find the keys that are not larger than the key of the line before; return the last key."""
    for number, key in keys:
        if not key:
            continue
        if key == last:
            repeated.add(number, _repetition(key, number - 1))
        elif key < last:
            message = f"the key {shown(key)} stands after {shown(last)}, which is larger: {_SORTING}"
            disordered.add(number, message)
        last = key
    return last


def _find_repeated(path: str, hashes: UInt64s) -> ProblemLines:
    """Return the lines of a table in any order whose key an earlier line has."""
    found = ProblemLines()
    values, counts = np.unique(hashes, return_counts=True)
    lines: dict[bytes, int] = {}
    for number, key in places_of(path, values[counts > 1]):
        if lines.setdefault(key, number) != number and key:
            found.add(number, _repetition(key, lines[key]))
    return found


def _repetition(key: bytes, line: int) -> str:
    return f"the key {shown(key)} is that of line {line:,} too: keep one of the two lines"


def _ends_problems(path: str, ends: dict[str, int]) -> Iterator[Problem]:
    if ends.get("returns"):
        message = (
            f"{ends['returns']:,} line ends are CR LF, as on Windows. They are read here, and not by "
            f"Kaldi's own scripts: `dos2unix FILE`"
        )
        yield Problem("warning", path, None, message)
    if ends.get("open"):
        message = "the last line has no line end: the file may be cut. Look at it, and append a newline"
        yield Problem("warning", path, None, message)
