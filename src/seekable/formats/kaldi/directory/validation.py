"""The validation of a data directory, as Kaldi's ``utils/validate_data_dir.sh`` does it.

Each table is read once (`scan_table`), and a check of its lines is called with its blocks, one after the
other. Tables are compared by the hashes of their keys, 8 bytes a line. Only where they differ are they read
again, for the lines that a problem names.

What Kaldi refuses is an error, with these exceptions, which are warnings: files that are missing, recordings
that no segment uses, utterances that do not begin with their speaker, Windows line ends, and a last line
without its end. None of them keeps a record from being read.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from typing import TYPE_CHECKING, Final, final

import numpy as np
import xxhash
from xxhash import xxh3_64_intdigest as xxh3

from seekable._arguments import checked_path
from seekable.errors import CorruptTable, DataNotFound, InvalidArgument
from seekable.formats.kaldi.directory.text_tables import (
    TABLES,
    Problem,
    ProblemLines,
    blocks_of,
    hashes_of,
    places_of,
    scan_table,
    shown,
)
from seekable.formats.kaldi.files.specifiers import check_rxfilename, split_range
from seekable.storage import paths
from seekable.storage.files import regular_only, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seekable.formats.kaldi.directory.text_tables import Level, LineBlock, ScannedTable, UInt64s
    from seekable.index.fileset import FileSet

_SYMBOL: Final = re.compile(rb"[ \t](<s>|</s>|#0)(?=[ \t\n])")
_NO_WORDS: Final = re.compile(rb"^[^ \t\n]*[ \t]*$", re.MULTILINE)
_ODD_SPACE: Final = re.compile(r"[^\S \t\n]")
_TIMES: Final = re.compile(rb"^[^ \t\n]+[ \t]+[^ \t\n]+[ \t]+([^ \t\n]+)[ \t]+([^ \t\n]+)", re.MULTILINE)
_SYMBOLS: Final = (b"<s>", b"</s>", b"#0")
_ASCII_SPACE: Final = (b"\r", b"\v", b"\f", b"\x1c", b"\x1d", b"\x1e", b"\x1f")
_UNUSUAL: Final = (b"|", b" ~", b"\t~", b" -", b"\t-", b" ark", b"\tark", b" scp", b"\tscp")
"""Bytes of lines whose filename is a command or maybe invalid; their search is faster than an expression."""

_TO_THE_END: Final = -1.0
BASES: Final = ("segments", "wav.scp", "feats.scp", "text", "utt2spk")
"""The tables that can list the utterances of a directory; the first one that exists does."""

_POINTING: Final = frozenset({"segments", "utt2spk"})
"""The tables whose second word is the key of another table."""

_FIXING: Final = "or remove it there, as utils/fix_data_dir.sh does"
REMEMBERED: Final = "kaldi-directory.json"
"""The name of the file, in the index folder, that has the digest of tables that were found valid."""

_RULES: Final = 1
"""The version of the rules; tables that were valid by other rules are validated again."""

_MOST_SHOWN: Final = 10


@final
class _Transcripts:
    """The check of ``text``: symbols that decoding needs for itself, white space, encoding, missing words."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._symbols, self._spaces, self._undecodable, self._empty = (
            ProblemLines(),
            ProblemLines(),
            ProblemLines(),
            ProblemLines(),
        )

    def __call__(self, block: LineBlock) -> None:
        """Check the lines of a block."""
        data = block.data
        marks = (*_SYMBOLS, *_ASCII_SPACE)
        is_odd = not data.isascii() or any(mark in data for mark in marks) or _NO_WORDS.search(data[:-1])
        if is_odd:
            for number, line in zip(block.numbers, block.lines, strict=True):
                self._check(number, line)

    def _check(self, number: int, line: bytes) -> None:
        if found := _SYMBOL.search(line + b"\n"):
            message = f"the transcript has {found[1].decode()!r}, which Kaldi keeps for itself: remove it"
            self._symbols.add(number, message)
        try:
            if odd := _ODD_SPACE.search(line.decode()):
                message = (
                    f"the transcript has the white space {odd[0]!r} (U+{ord(odd[0]):04X}), which parts "
                    f"words for some tools and not for Kaldi: write a space, or remove it"
                )
                self._spaces.add(number, message)
        except UnicodeDecodeError as error:
            message = (
                f"byte {error.start + 1} of the line is not UTF-8: {shown(line)}; convert the file with iconv"
            )
            self._undecodable.add(number, message)
        if _NO_WORDS.fullmatch(line):
            message = (
                f"the transcript of {shown(line.strip())} is empty: write it, or remove the utterance "
                f"from all tables"
            )
            self._empty.add(number, message)

    def problems(self) -> Iterator[Problem]:
        """Yield the problems of all lines."""
        yield from self._undecodable.problems("error", self._path)
        yield from self._symbols.problems("error", self._path)
        yield from self._spaces.problems("error", self._path)
        yield from self._empty.problems("warning", self._path)


@final
class _Times:
    """The check of ``segments``: each ends after its start, or at the end of the recording (-1)."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._empty = ProblemLines()

    def __call__(self, block: LineBlock) -> None:
        """Check the lines of a block."""
        words = _TIMES.findall(block.data)
        times = np.array(words, np.bytes_).reshape(-1, 2).astype(np.float64)
        starts, ends = times[:, 0], times[:, 1]
        for at in np.flatnonzero(~((starts < ends) | (ends == _TO_THE_END)) | ~np.isfinite(starts)).tolist():
            start, end = (word.decode() for word in words[at])
            message = (
                f"the segment must end after its start, {start}, or at -1, the end of the recording "
                f"(got {end})"
            )
            self._empty.add(block.numbers[at], message)

    def problems(self) -> Iterator[Problem]:
        """Yield the problems of all lines."""
        yield from self._empty.problems("error", self._path)


@final
class _SpeakerPairs:
    """The check of ``utt2spk``, and the hashes of its pairs: utterance, speaker."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._unprefixed = ProblemLines()
        self._hashes = [np.empty(0, np.uint64)]

    def __call__(self, block: LineBlock) -> None:
        """Check the lines of a block."""
        words = block.words
        self._hashes.append(hashes_of(map(b" ".join, words)))
        if all(utterance.startswith(speaker) for utterance, speaker in words):
            return
        for number, (utterance, speaker) in zip(block.numbers, words, strict=True):
            if not utterance.startswith(speaker):
                message = (
                    f"the utterance {shown(utterance)} does not begin with its speaker, {shown(speaker)}: "
                    f"Kaldi's own scripts need that, so that both are sorted alike; name it SPEAKER-UTTERANCE"
                )
                self._unprefixed.add(number, message)

    @property
    def hashes(self) -> UInt64s:
        """The hashes of the pairs, in the order of the lines."""
        return np.concatenate(self._hashes)

    def problems(self) -> Iterator[Problem]:
        """Yield the problems of all lines."""
        yield from self._unprefixed.problems("warning", self._path)


@final
class _SpeakerGroups:
    """The hashes of the pairs in ``spk2utt``, as `_SpeakerPairs` has them."""

    def __init__(self) -> None:
        self._hashes = [np.empty(0, np.uint64)]

    def __call__(self, block: LineBlock) -> None:
        """Take the lines of a block."""
        for pairs in map(_pairs_of_group, block.lines):
            self._hashes.append(hashes_of(pairs))

    @property
    def hashes(self) -> UInt64s:
        """The hashes of the pairs, in the order of the lines."""
        return np.concatenate(self._hashes)


def _pairs_of_group(line: bytes) -> list[bytes]:
    """Return the pairs "utterance speaker" in a line of ``spk2utt``; none for a blank line.

    Example:
        >>> _pairs_of_group(b"spk1 utt1 utt2")
        [b'utt1 spk1', b'utt2 spk1']
    """
    speaker, *utterances = line.split() or [b""]
    return [b"%b %b" % (utterance, speaker) for utterance in utterances]


@final
class _FileNames:
    """The check of the scripts of a directory: each line names something that can be read."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._invalid = ProblemLines()

    def __call__(self, block: LineBlock) -> None:
        """Check the lines of a block."""
        if not any(mark in block.data for mark in _UNUSUAL):
            return
        for number, line in zip(block.numbers, block.lines, strict=True):
            name = os.fsdecode(line.split(None, 1)[1].rstrip())
            if name.startswith("~"):
                self._invalid.add(
                    number, f"{name!r} begins with '~', which only shells know: write the whole path"
                )
                continue
            try:
                kind = check_rxfilename(split_range(name)[0])
            except InvalidArgument as error:
                self._invalid.add(number, str(error))
                continue
            if kind == "stdin":
                self._invalid.add(
                    number, f"{name!r} is standard input, which is not a file of a data directory"
                )

    def problems(self) -> Iterator[Problem]:
        """Yield the problems of all lines."""
        yield from self._invalid.problems("error", self._path)


_Check = _FileNames | _SpeakerGroups | _SpeakerPairs | _Times | _Transcripts


def present_tables(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the path of each known table of a data directory, by name.

    Raises:
        DataNotFound: there is no such directory, or it has no table that lists utterances.
    """
    folder = paths.absolute(os.path.expanduser(checked_path(path)))
    if not paths.is_folder(folder):
        what = "is a file" if os.path.lexists(folder) else "does not exist"
        message = f"there is no data directory {folder!r}: it {what}"
        raise DataNotFound(message)
    there = set(paths.list_folder(folder))
    found = {name: os.path.join(folder, name) for name in TABLES if name in there}
    found = {name: file for name, file in found.items() if "://" in file or os.path.isfile(file)}
    if found.keys().isdisjoint(BASES):
        message = f"{folder!r} is not a data directory of Kaldi: it has none of the files {', '.join(BASES)}"
        raise DataNotFound(message)
    return found


def validate_directory(path: str | os.PathLike[str]) -> tuple[Problem, ...]:
    r"""Return the problems of a data directory, those of each table first; none if it is valid.

    What ``utils/validate_data_dir.sh`` refuses is an error, and keeps `seekable.open` from opening the
    directory. Missing files, recordings without a segment, and utterances whose names do not begin with their
    speaker are warnings. Of lines with the same problem the first few are listed.

    Args:
        path: the directory.

    Raises:
        DataNotFound: there is no such directory, or it has no table that lists utterances.
        AccessDenied: this user may not read a table.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "text").write_text("utt2 good\nutt1 day\n")
        ...     [(each.level, each.line) for each in validate_directory(folder) if each.line]
        [('error', 2)]
    """
    paths = present_tables(path)
    pairs, groups = _SpeakerPairs(paths.get("utt2spk", "")), _SpeakerGroups()
    tables: dict[str, ScannedTable] = {}
    found: list[Problem] = []
    for name, file in paths.items():
        check = _check_of(name, file, pairs, groups)
        tables[name] = scan_table(TABLES[name], file, second=name in _POINTING, look=check)
        found += tables[name].problems
        if check is not None and not isinstance(check, _SpeakerGroups):
            found += check.problems()
    found += _between_tables(os.path.dirname(paths[next(iter(paths))]), tables)
    if "utt2spk" in tables and "spk2utt" in tables:
        found += _pairs_problems(tables["utt2spk"], tables["spk2utt"], pairs, groups)
    return tuple(found)


def _check_of(name: str, path: str, pairs: _SpeakerPairs, groups: _SpeakerGroups) -> _Check | None:
    """Return the check of the lines of a table, beyond their form."""
    if name.endswith(".scp"):
        return _FileNames(path)
    if name == "text":
        return _Transcripts(path)
    if name == "segments":
        return _Times(path)
    if name == "utt2spk":
        return pairs
    return groups if name == "spk2utt" else None


def _between_tables(folder: str, tables: Mapping[str, ScannedTable]) -> Iterator[Problem]:
    """Yield the problems that tables have with each other."""
    main = tables.get("utt2spk") or next(tables[name] for name in BASES if name in tables)
    with_segments = "segments" in tables
    for table in tables.values():
        if table is not main and (
            table.table.keyed == "utterance" or (table.table.keyed == "recording" and not with_segments)
        ):
            yield from _compared(main, main.keys, table, extra="error")
    if with_segments:
        yield from _recordings_problems(folder, tables)
    for table in tables.values():
        if table.table.keyed == "speaker" and "utt2spk" in tables:
            yield from _compared(tables["utt2spk"], tables["utt2spk"].second, table, extra="error")
    yield from _speakers_problems(folder, tables)


def _recordings_problems(folder: str, tables: Mapping[str, ScannedTable]) -> Iterator[Problem]:
    """Yield the problems of the tables of recordings with the segments."""
    segments = tables["segments"]
    if "wav.scp" not in tables:
        message = (
            "segments are parts of the recordings of wav.scp, which is missing: write it, or remove segments"
        )
        yield Problem("warning" if "feats.scp" in tables else "error", folder, None, message)
    for table in tables.values():
        if table.table.keyed == "recording":
            yield from _compared(segments, segments.second, table, extra="warning")


def _speakers_problems(folder: str, tables: Mapping[str, ScannedTable]) -> Iterator[Problem]:
    """Yield the problems of the tables of speakers that are missing, or have one speaker."""
    if "utt2spk" not in tables:
        others = [name for name, table in tables.items() if table.table.keyed == "speaker"]
        unused = f"; without it {', '.join(others)} cannot be used" if others else ""
        message = (
            f"utt2spk is missing, and Kaldi's own scripts need it{unused}: write a line UTTERANCE SPEAKER "
            f"for each utterance"
        )
        yield Problem("warning", folder, None, message)
        return
    if "spk2utt" not in tables:
        message = (
            "spk2utt is missing, and Kaldi's own scripts need it: utils/utt2spk_to_spk2utt.pl makes it of "
            "utt2spk"
        )
        yield Problem("warning", folder, None, message)
    if len(np.unique(tables["utt2spk"].second)) == 1 and len(tables["utt2spk"].keys) > 1:
        message = (
            "all utterances have one speaker: where speakers are not known, take each utterance for a speaker"
        )
        yield Problem("warning", tables["utt2spk"].path, None, message)


def _compared(main: ScannedTable, wanted: UInt64s, table: ScannedTable, *, extra: Level) -> Iterator[Problem]:
    """Yield the problems of a table whose keys are not those that another table has.

    Args:
        main: the other table.
        wanted: the hashes of its words that are keys of the table.
        table: the table.
        extra: the level of a key that the other table does not have.
    """
    if np.array_equal(wanted, table.keys):
        return
    keyed = table.table.keyed
    lacking = np.setdiff1d(wanted, table.keys)
    word = 0 if wanted is main.keys else 1
    lines = ProblemLines()
    for number, key in places_of(main.path, lacking, word=word):
        lines.add(number, f"{table.table.name} has no line for the {keyed} {shown(key)}: add one, {_FIXING}")
    yield from lines.problems("error", main.path)
    lines = ProblemLines()
    for number, key in places_of(table.path, np.setdiff1d(table.keys, wanted)):
        lines.add(number, f"{main.table.name} has no {keyed} {shown(key)}: add it there, or remove this line")
    yield from lines.problems(extra, table.path)


def _pairs_problems(
    utt2spk: ScannedTable, spk2utt: ScannedTable, pairs: _SpeakerPairs, groups: _SpeakerGroups
) -> Iterator[Problem]:
    """Yield the problems of utterances that utt2spk and spk2utt give to different speakers."""
    ours, theirs = np.sort(pairs.hashes), np.sort(groups.hashes)
    if np.array_equal(ours, theirs):
        return
    advice = "make spk2utt of utt2spk again, with utils/utt2spk_to_spk2utt.pl"
    lines, lacking = ProblemLines(), set(np.setdiff1d(ours, theirs).tolist())
    for block in blocks_of(utt2spk.path, {}):
        words = block.words
        for number, (utterance, speaker), hashed in zip(
            block.numbers, words, hashes_of(map(b" ".join, words)).tolist(), strict=False
        ):
            if hashed in lacking:
                message = (
                    f"spk2utt does not give {shown(utterance)} to the speaker {shown(speaker)}: {advice}"
                )
                lines.add(number, message)
    yield from lines.problems("error", utt2spk.path)
    lines, known = ProblemLines(), set(ours.tolist())
    for block in blocks_of(spk2utt.path, {}):
        for number, line in zip(block.numbers, block.lines, strict=True):
            for pair in _pairs_of_group(line):
                hashed = xxh3(pair)
                if hashed not in known:
                    lines.add(
                        number, f"utt2spk does not have {shown(pair)}, or spk2utt has it twice: {advice}"
                    )
                known.discard(hashed)
    yield from lines.problems("error", spk2utt.path)


def check_directory(files: FileSet) -> None:
    """Validate the tables of a data directory, unless they are as they were when they were found valid.

    Args:
        files: the tables, all in one folder.

    Raises:
        CorruptTable: the directory has an error; the message lists the first ones.
    """
    path = os.path.join(files.folders[0], REMEMBERED)
    digest = _digest(files)
    if _remembered(path) == digest:
        return
    folder = os.path.dirname(files.path(0))
    errors = [problem for problem in validate_directory(folder) if problem.level == "error"]
    if errors:
        shown = "".join(f"\n  {problem}" for problem in errors[:_MOST_SHOWN])
        more = f"\n  and {len(errors) - _MOST_SHOWN:,} more" if len(errors) > _MOST_SHOWN else ""
        message = (
            f"the data directory {folder!r} is not valid, and a record of it could be a wrong one; mend it, "
            f"or let Kaldi's utils/fix_data_dir.sh do so:{shown}{more}"
        )
        raise CorruptTable(message)
    document = json.dumps({"seekable_kaldi_directory": _RULES, "valid": digest}) + "\n"
    # A folder that cannot be written costs a validation at each opening, and nothing else.
    with contextlib.suppress(OSError):
        write_atomically(path, document.encode())


def _digest(files: FileSet) -> str:
    hasher = xxhash.xxh3_64(json.dumps([_RULES, files.names()]).encode())
    hasher.update(files.contents.tobytes())
    return hasher.hexdigest()


def _remembered(path: str) -> str | None:
    try:
        with open(path, "rb", opener=regular_only) as file:
            return str(json.load(file)["valid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
