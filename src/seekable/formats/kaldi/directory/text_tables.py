"""The text tables of a data directory: the names of the files, the form of a line, what their keys are.

A line is a key, spaces or tabs, and the rest. A form is an expression for one whole line with its line end;
its quantifiers are possessive, so that a match takes time in proportion to the bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from types import MappingProxyType
from typing import Final, Literal

from seekable.formats.kaldi.objects.tokens import TOKEN

__all__ = ["TABLES", "Keyed", "TextTable"]

Keyed = Literal["utterance", "recording", "speaker"]
"""The kinds of things that the keys of tables name."""

_GAP: Final = rb"[ \t]++"
_WORD: Final = rb"[^\s\0]++"
_REST: Final = rb"[^\s\0][^\n\0]*+"
_NUMBER: Final = rb"\+?(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?+"


@dataclass(frozen=True)
class TextTable:
    """A text table of a data directory."""

    name: str
    """The name of the file."""

    keyed: Keyed
    """The kind of things that its keys name; without segments, each utterance is a recording of its own."""

    shown: str
    """The form of a line, in words for messages."""

    rest: bytes = field(repr=False)
    """The expression for what follows the key and the gap."""

    may_be_empty: bool = False
    """True if nothing need follow the key."""

    between: tuple[float, float] | None = None
    """Of numbers: the bounds that they lie between, and do not reach; None for tables of other things."""

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
            TextTable(
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
            TextTable("wav.scp", "recording", "RECORDING, and a file or a command", _REST),
            TextTable("feats.scp", "utterance", "UTTERANCE FILE", _REST),
            TextTable("text", "utterance", "UTTERANCE WORD ...", _REST, may_be_empty=True),
            TextTable("utt2spk", "utterance", "UTTERANCE SPEAKER", _WORD),
            TextTable("utt2dur", "utterance", "UTTERANCE SECONDS, above 0", _NUMBER, between=_POSITIVE),
            TextTable(
                "utt2num_frames", "utterance", "UTTERANCE FRAMES, an integer above 0", rb"0*+[1-9][0-9]*+"
            ),
            TextTable("utt2lang", "utterance", "UTTERANCE LANGUAGE", _WORD),
            TextTable("utt2uniq", "utterance", "UTTERANCE UTTERANCE", _WORD),
            TextTable(
                "utt2warp", "utterance", "UTTERANCE WARP, above 0.5 and below 1.5", _NUMBER, between=_WARPS
            ),
            TextTable("vad.scp", "utterance", "UTTERANCE FILE", _REST),
            TextTable("spk2utt", "speaker", "SPEAKER UTTERANCE ...", _REST),
            TextTable("spk2gender", "speaker", "SPEAKER, and m or f", rb"[mf]"),
            TextTable(
                "spk2warp", "speaker", "SPEAKER WARP, above 0.5 and below 1.5", _NUMBER, between=_WARPS
            ),
            TextTable("cmvn.scp", "speaker", "SPEAKER FILE", _REST),
            TextTable("reco2dur", "recording", "RECORDING SECONDS, above 0", _NUMBER, between=_POSITIVE),
            TextTable(
                "reco2file_and_channel",
                "recording",
                "RECORDING FILE CHANNEL, where the channel is A or B",
                _WORD + _GAP + rb"[AB1]",
            ),
        )
    }
)
"""The text tables that are known, by name. Other files of a data directory are not looked at."""
