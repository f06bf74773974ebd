"""Checks of the lines of one table, beyond their form: of transcripts, times, speakers and filenames.

Each check is called with the blocks of its table one after the other, and then has its problems.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final, final

import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.kaldi.directory.scan_table import Lines, hashes_of, shown
from seekable.formats.kaldi.files.filenames import check_rxfilename, split_range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.formats.kaldi.directory.problem import Problem
    from seekable.formats.kaldi.directory.scan_table import Block, UInt64s

__all__ = ["FileNames", "Groups", "Pairs", "Times", "Transcripts"]

_SYMBOL: Final = re.compile(rb"[ \t](<s>|</s>|#0)(?=[ \t\n])")
_NO_WORDS: Final = re.compile(rb"^[^ \t\n]*[ \t]*$", re.MULTILINE)
_ODD_SPACE: Final = re.compile(r"[^\S \t\n]")
_TIMES: Final = re.compile(rb"^[^ \t\n]+[ \t]+[^ \t\n]+[ \t]+([^ \t\n]+)[ \t]+([^ \t\n]+)", re.MULTILINE)
_SYMBOLS: Final = (b"<s>", b"</s>", b"#0")
_ASCII_SPACE: Final = (b"\r", b"\v", b"\f", b"\x1c", b"\x1d", b"\x1e", b"\x1f")
_UNUSUAL: Final = (b"|", b" ~", b"\t~", b" -", b"\t-", b" ark", b"\tark", b" scp", b"\tscp")
"""Bytes of lines whose filename is a command or maybe invalid; their search is faster than an expression."""

_TO_THE_END: Final = -1.0


@final
class Transcripts:
    """The check of ``text``: symbols that decoding needs for itself, white space, encoding, missing words."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._symbols, self._spaces, self._undecodable, self._empty = Lines(), Lines(), Lines(), Lines()

    def __call__(self, block: Block) -> None:
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
                f"byte {error.start + 1} of the line is no UTF-8: {shown(line)}; convert the file with iconv"
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
class Times:
    """The check of ``segments``: each ends behind its start, or at the end of the recording (-1)."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._empty = Lines()

    def __call__(self, block: Block) -> None:
        """Check the lines of a block."""
        words = _TIMES.findall(block.data)
        times = np.array(words, np.bytes_).reshape(-1, 2).astype(np.float64)
        starts, ends = times[:, 0], times[:, 1]
        for at in np.flatnonzero(~((starts < ends) | (ends == _TO_THE_END)) | ~np.isfinite(starts)).tolist():
            start, end = (word.decode() for word in words[at])
            message = (
                f"the segment must end behind its start, {start}, or at -1, the end of the recording "
                f"(got {end})"
            )
            self._empty.add(block.numbers[at], message)

    def problems(self) -> Iterator[Problem]:
        """Yield the problems of all lines."""
        yield from self._empty.problems("error", self._path)


@final
class Pairs:
    """The check of ``utt2spk``, and the hashes of its pairs of an utterance and its speaker."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._unprefixed = Lines()
        self._hashes = [np.empty(0, np.uint64)]

    def __call__(self, block: Block) -> None:
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
class Groups:
    """The hashes of the pairs of an utterance and its speaker of ``spk2utt``, as `Pairs` has them."""

    def __init__(self) -> None:
        self._hashes = [np.empty(0, np.uint64)]

    def __call__(self, block: Block) -> None:
        """Take the lines of a block."""
        for pairs in map(pairs_of_group, block.lines):
            self._hashes.append(hashes_of(pairs))

    @property
    def hashes(self) -> UInt64s:
        """The hashes of the pairs, in the order of the lines."""
        return np.concatenate(self._hashes)


def pairs_of_group(line: bytes) -> list[bytes]:
    """Return the pairs of an utterance and its speaker of a line of ``spk2utt``, none of a blank line.

    Example:
        >>> pairs_of_group(b"spk1 utt1 utt2")
        [b'utt1 spk1', b'utt2 spk1']
    """
    speaker, *utterances = line.split() or [b""]
    return [b"%b %b" % (utterance, speaker) for utterance in utterances]


@final
class FileNames:
    """The check of the scripts of a directory: each line names something that can be read."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._invalid = Lines()

    def __call__(self, block: Block) -> None:
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
                self._invalid.add(number, f"{name!r} is standard input, which is no file of a data directory")

    def problems(self) -> Iterator[Problem]:
        """Yield the problems of all lines."""
        yield from self._invalid.problems("error", self._path)
