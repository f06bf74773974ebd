"""The validation of a data directory, as Kaldi's ``utils/validate_data_dir.sh`` does it.

Each table is read once (`scan_table`). Tables are compared by the hashes of their keys, 8 bytes a line. Only
where they differ are they read again, for the lines that a problem names.

What Kaldi refuses is an error, with these exceptions, which are warnings: files that are missing, recordings
that no segment uses, utterances that do not begin with their speaker, Windows line ends, and a last line
without its end. None of them keeps a record from being read.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import numpy as np
from xxhash import xxh3_64_intdigest as xxh3

from seekable._arguments import checked_path
from seekable.errors import DataNotFound
from seekable.formats.kaldi.directory.line_checks import (
    FileNames,
    Groups,
    Pairs,
    Times,
    Transcripts,
    pairs_of_group,
)
from seekable.formats.kaldi.directory.problem import Problem
from seekable.formats.kaldi.directory.scan_table import (
    Lines,
    blocks_of,
    hashes_of,
    places_of,
    scan_table,
    shown,
)
from seekable.formats.kaldi.directory.text_tables import TABLES
from seekable.storage import paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seekable.formats.kaldi.directory.problem import Level
    from seekable.formats.kaldi.directory.scan_table import ScannedTable, UInt64s

    Check = FileNames | Groups | Pairs | Times | Transcripts

__all__ = ["BASES", "present_tables", "validate_directory"]

BASES: Final = ("segments", "wav.scp", "feats.scp", "text", "utt2spk")
"""The tables that can list the utterances of a directory; the first one that exists does."""

_POINTING: Final = frozenset({"segments", "utt2spk"})
"""The tables whose second word is the key of another table."""

_FIXING: Final = "or remove it there, as utils/fix_data_dir.sh does"


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
        message = f"{folder!r} is no data directory of Kaldi: it has none of the files {', '.join(BASES)}"
        raise DataNotFound(message)
    return found


def validate_directory(path: str | os.PathLike[str]) -> tuple[Problem, ...]:
    r"""Return the problems of a data directory of Kaldi, those of each table first; none if it is valid.

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
    pairs, groups = Pairs(paths.get("utt2spk", "")), Groups()
    tables: dict[str, ScannedTable] = {}
    found: list[Problem] = []
    for name, file in paths.items():
        check = _check_of(name, file, pairs, groups)
        tables[name] = scan_table(TABLES[name], file, second=name in _POINTING, look=check)
        found += tables[name].problems
        if check is not None and not isinstance(check, Groups):
            found += check.problems()
    found += _between_tables(os.path.dirname(paths[next(iter(paths))]), tables)
    if "utt2spk" in tables and "spk2utt" in tables:
        found += _pairs_problems(tables["utt2spk"], tables["spk2utt"], pairs, groups)
    return tuple(found)


def _check_of(name: str, path: str, pairs: Pairs, groups: Groups) -> Check | None:
    """Return the check of the lines of a table, beyond their form."""
    if name.endswith(".scp"):
        return FileNames(path)
    if name == "text":
        return Transcripts(path)
    if name == "segments":
        return Times(path)
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
    lines = Lines()
    for number, key in places_of(main.path, lacking, word=word):
        lines.add(number, f"{table.table.name} has no line for the {keyed} {shown(key)}: add one, {_FIXING}")
    yield from lines.problems("error", main.path)
    lines = Lines()
    for number, key in places_of(table.path, np.setdiff1d(table.keys, wanted)):
        lines.add(number, f"{main.table.name} has no {keyed} {shown(key)}: add it there, or remove this line")
    yield from lines.problems(extra, table.path)


def _pairs_problems(
    utt2spk: ScannedTable, spk2utt: ScannedTable, pairs: Pairs, groups: Groups
) -> Iterator[Problem]:
    """Yield the problems of utterances that utt2spk and spk2utt give to different speakers."""
    ours, theirs = np.sort(pairs.hashes), np.sort(groups.hashes)
    if np.array_equal(ours, theirs):
        return
    advice = "make spk2utt of utt2spk again, with utils/utt2spk_to_spk2utt.pl"
    lines, lacking = Lines(), set(np.setdiff1d(ours, theirs).tolist())
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
    lines, known = Lines(), set(ours.tolist())
    for block in blocks_of(spk2utt.path, {}):
        for number, line in zip(block.numbers, block.lines, strict=True):
            for pair in pairs_of_group(line):
                hashed = xxh3(pair)
                if hashed not in known:
                    lines.add(
                        number, f"utt2spk does not have {shown(pair)}, or spk2utt has it twice: {advice}"
                    )
                known.discard(hashed)
    yield from lines.problems("error", spk2utt.path)
