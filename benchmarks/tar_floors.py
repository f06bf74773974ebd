"""The floors of archives: one ``pread`` for each sample, its headers parsed, and nothing else.

Where samples lie is known, as an index would have it. Nothing is checked.
"""

from __future__ import annotations

import os
import tarfile
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BLOCK = 512
_REGULAR = b"0\0"
_JSON = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Archives:
    """Open archives, and where their samples and members lie."""

    samples: list[tuple[int, int, int]]
    """The file, the offset and the length of each sample."""

    members: list[dict[str, tuple[int, int, int]]]
    """The file, the offset and the length of each field's content, sample by sample."""

    @classmethod
    def of(cls, paths: Sequence[str]) -> Archives:
        """Open tar files and list their members; samples are runs of one key."""
        found = cls([], [])
        for path in paths:
            found._add(os.open(path, os.O_RDONLY), path)
        return found

    def _add(self, file: int, path: str) -> None:
        with tarfile.open(path, "r:") as tar:
            members = tar.getmembers()
            last = tar.offset
        ends = [*(member.offset for member in members[1:]), last]
        key = None
        for member, end in zip(members, ends, strict=True):
            stem, _, field = member.name.partition(".")
            if stem != key:
                key = stem
                self.samples.append((file, member.offset, 0))
                self.members.append({})
            self.members[-1][field] = (file, member.offset_data, member.size)
            self.samples[-1] = (file, self.samples[-1][1], end - self.samples[-1][1])

    def close(self) -> None:
        """Close the files."""
        for file in {file for file, _, _ in self.samples}:
            os.close(file)

    def raw(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Return samples as dicts of bytes."""
        pread, samples = os.pread, self.samples
        return [parsed(pread(file, count, start)) for file, start, count in (samples[row] for row in rows)]

    def decoded(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Return samples with their JSON and their text decoded."""
        found = self.raw(rows)
        for sample in found:
            sample["json"] = _JSON(sample["json"])
            sample["txt"] = sample["txt"].decode()
        return found

    def column(self, field: str, decode: Callable[[bytes], Any], rows: Sequence[int]) -> list[Any]:
        """Return one field of samples, decoded."""
        pread, members = os.pread, self.members
        return [
            decode(pread(file, count, start)) for file, start, count in (members[row][field] for row in rows)
        ]


def parsed(block: bytes) -> dict[str, Any]:
    """Return the members of a sample, by suffix, and its key."""
    at, last, found = 0, len(block), {}
    key = ""
    while at < last:
        size = int(block[at + 124 : at + 135], 8)
        start = at + _BLOCK
        if block[at + 156] in _REGULAR:
            name = block[at : block.index(0, at)].decode()
            key, _, field = name.partition(".")
            found[field] = block[start : start + size]
        at = start + (size + 511 & -_BLOCK)
    return {"__key__": key, **found}


@dataclass(frozen=True, slots=True)
class Shar:
    """Open files of a Shar folder: two preads a cut."""

    lines: list[tuple[int, int, int]]
    pairs: Archives

    @classmethod
    def of(cls, folder: str) -> Shar:
        """Open the files of cuts and recordings."""
        names = sorted(name for name in os.listdir(folder) if name.endswith((".jsonl", ".tar")))
        lines: list[tuple[int, int, int]] = []
        for name in names:
            if name.startswith("cuts."):
                lines += _lines(os.path.join(folder, name))
        tars = [os.path.join(folder, name) for name in names if name.startswith("recording.")]
        return cls(lines, Archives.of(tars))

    def close(self) -> None:
        """Close the files."""
        self.pairs.close()
        for file in {file for file, _, _ in self.lines}:
            os.close(file)

    def cuts(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Return cuts without payloads."""
        return [
            _JSON(os.pread(file, count, start)) for file, start, count in (self.lines[row] for row in rows)
        ]

    def raw(self, rows: Sequence[int], decode: Callable[[bytes], Any] = bytes) -> list[dict[str, Any]]:
        """Return cuts with their recording's manifest and payload."""
        found = []
        for row in rows:
            file, start, count = self.lines[row]
            cut = _JSON(os.pread(file, count, start))
            file, start, count = self.pairs.samples[row]
            pair = parsed(os.pread(file, count, start))
            cut["recording"] = {**_JSON(pair["json"]), "data": decode(pair["wav"])}
            found.append(cut)
        return found

    def heard(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Return cuts whose audio is decoded by numpy."""
        return self.raw(rows, samples_of)


def samples_of(file: bytes) -> tuple[Any, int]:
    """Return the samples of a WAV file of 16 bits as float32, and their rate."""
    return np.frombuffer(file, "<i2", offset=44).astype(np.float32) / 32768, 16_000


def _lines(path: str) -> list[tuple[int, int, int]]:
    file = os.open(path, os.O_RDONLY)
    with open(path, "rb") as lines:
        sizes = list(map(len, lines))
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    return [(file, start, count) for start, count in zip(starts, sizes, strict=True)]


def by_tarfile(path: str) -> int:
    """Return the number of members of a tar file that tarfile lists."""
    with tarfile.open(path, "r:") as tar:
        return sum(1 for _ in tar)


json_column = partial(Archives.column, field="json", decode=_JSON)
