"""The index that Forager (data-forager) keeps in a folder of JSON lines, ``index/``.

``file_location.txt`` has the path of each file in a line, relative to the folder. ``sample_locations.bin``
has three little-endian uint64 for each sample: the number of its file, its first byte and its bytes. Of JSON
lines a sample is a line with its line end; blank lines are samples too. Of tokens, whose files end in
``.bin``, it is a row of numbers; ``sample_schema.json`` says which, if there are several arrays.
"""

from __future__ import annotations

import functools
import os
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from seekable._lazy import lazy
from seekable.errors import IndexStale, Unreachable
from seekable.index.finder import ALWAYS_NS, OtherOffsets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from seekable.storage import paths
    from seekable.storage.paths import PathStatus
else:
    paths = lazy("seekable.storage.paths")

__all__ = ["INDEX", "NAMES", "NEEDED", "ForagerIndex", "index_over", "is_of_tokens", "read_index"]

INDEX = "index"
"""The folder of the index, in the folder of the data."""

_FILES, _SAMPLES, _SCHEMA = "file_location.txt", "sample_locations.bin", "sample_schema.json"

NEEDED = frozenset({_FILES, _SAMPLES})
"""The files that every index has."""

NAMES = (_FILES, _SAMPLES, _SCHEMA)
"""The files that an index may have."""

_SAMPLE_BYTES = 24
_SAMPLES_AT_ONCE = 1 << 20
_PEEKED_BYTES = 1 << 16
_NUMBERS = np.dtype("<u8")


@dataclass(frozen=True, slots=True, eq=False)
class ForagerIndex:
    """The index of one folder; an `OtherIndex`."""

    folder: str
    """The folder of the data."""

    files: Mapping[str, int]
    """The numbers of the files, by their paths relative to the folder."""

    samples: NDArray[np.uint64]
    """The samples: the numbers of their files, their first bytes and their lengths; memory-mapped unless they
    are in a store."""

    made_ns: int
    """The time at which the index was last written, in nanoseconds; `ALWAYS_NS` in a store."""

    @property
    def label(self) -> str:
        """The name of the index in messages."""
        return f"Forager's index {os.path.join(self.folder, INDEX)!r}"

    def find(self, name: str) -> OtherOffsets | None:
        """Return the lines of a file; None if the index does not have it."""
        number = self.files.get(name)
        return None if number is None else OtherOffsets(self.made_ns, self._ranges(number))

    def _ranges(self, number: int) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64]]]:
        # The files come one after another: no column is copied to find one.
        first, stop = (
            bisect_left(range(len(self.samples)), wanted, key=lambda row: int(self.samples[row, 0]))
            for wanted in (number, number + 1)
        )
        for start in range(first, stop, _SAMPLES_AT_ONCE):
            some = self.samples[start : min(start + _SAMPLES_AT_ONCE, stop)]
            numbers, starts, lengths = np.ascontiguousarray(some.T)
            if (numbers != number).any():
                return
            yield starts, lengths


def is_of_tokens(folder: str) -> bool:
    """Return True if the index of a folder is of tokens, by the first file that it names.

    Where the list of the files is missing, the schema of the samples says it: only tokens have one.
    """
    try:
        with paths.open_file(os.path.join(folder, INDEX, _FILES)) as file:
            first = (file.read(_PEEKED_BYTES) or b"").partition(b"\n")[0]
    except FileNotFoundError:
        return paths.is_file(os.path.join(folder, INDEX, _SCHEMA))
    except OSError:
        return False
    return first.lower().endswith(b".bin")


def read_index(folder: str) -> ForagerIndex | None:
    """Return the index that Forager keeps of a folder; None if there is none, or it is not whole."""
    files, samples = (os.path.join(folder, INDEX, name) for name in (_FILES, _SAMPLES))
    try:
        of_samples, of_files = paths.status(samples), paths.status(files)
        if not of_samples.size or of_samples.size % _SAMPLE_BYTES:
            return None
        found = (_kept if "://" in folder else _read)(folder, of_samples, of_files)
    except (Unreachable, IndexStale):
        raise
    except (OSError, ValueError):
        return None
    return found


def index_over(folder: str, _names: Sequence[str], _named: str) -> ForagerIndex | None:
    """Return the index that Forager keeps of a folder; a `FindIndex`."""
    return read_index(folder)


def _read(folder: str, of_samples: PathStatus, of_files: PathStatus) -> ForagerIndex | None:
    files, samples = (os.path.join(folder, INDEX, name) for name in (_FILES, _SAMPLES))
    lines = paths.read_bytes(files).split(b"\n")
    if lines[-1] or any(b"\0" in line for line in lines):  # No file has such a name.
        return None
    made_ns = max(of_samples.mtime_ns, of_files.mtime_ns)
    if "://" in folder:
        made_ns, table = ALWAYS_NS, np.frombuffer(paths.read_bytes(samples), _NUMBERS)
    else:
        table = np.memmap(samples, _NUMBERS, "r")
    numbers = {os.path.normpath(os.fsdecode(line)): number for number, line in enumerate(lines[:-1])}
    return ForagerIndex(folder, numbers, table.reshape(-1, 3), made_ns)


@functools.lru_cache(maxsize=2)
def _kept(folder: str, of_samples: PathStatus, of_files: PathStatus) -> ForagerIndex | None:
    """Return an index in a store, which is fetched once for all files that it names."""
    return _read(folder, of_samples, of_files)
