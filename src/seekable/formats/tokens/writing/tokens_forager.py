"""Samples of a fixed number of tokens in the files of data-forager, which the parts of a store become.

Each document goes behind what was left of those before it, across files; whenever there are tokens for a
sample, it goes to the file of the document that completed it. What is left at the end is dropped.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import msgspec
import numpy as np

from seekable.errors import InvalidArgument
from seekable.formats.file_format import Ending
from seekable.formats.tokens.tokenizing.store_document import (
    HIDDEN_DOCUMENT,
    SOURCE_RUN,
    write_document,
)
from seekable.formats.tokens.writing.tokens_ending import described, facts_of
from seekable.formats.tokens.writing.tokens_format import Tokens
from seekable.storage.files import put_in_place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.file_format import FileFormat, Origin
    from seekable.formats.tokens.writing.tokens_layout import StoreLayout

__all__ = ["ForagerEnding", "forager_ending"]

_SAMPLES, _INDEX = "tokenized-samples", "index"
_FILES, _PLACES, _SCHEMA = (
    f"{_INDEX}/{name}" for name in ("file_location.txt", "sample_locations.bin", "sample_schema.json")
)

_BYTES_AT_ONCE = 4 << 20


def forager_ending(form: Tokens, files: Sequence[str], sample_size: int) -> ForagerEnding:
    """Return the last step that makes samples of the parts of a store.

    Args:
        form: the format of the parts.
        files: the files that records come from.
        sample_size: the number of tokens of a sample.

    Raises:
        InvalidArgument: there is no id behind documents, or two source files become one file of samples.
    """
    if form.tokenizing.eos is None:
        message = "sample_size= puts several documents into a sample, as data-forager does: give eos="
        raise InvalidArgument(message)
    if form.idx:
        message = "idx=True is for documents, and sample_size= makes samples: leave out one of them"
        raise InvalidArgument(message)
    stems = [PurePath(path).stem if os.path.isabs(path) else _SAMPLES for path in files] or [_SAMPLES]
    for number, stem in enumerate(stems):
        if stem in stems[:number] and os.path.isabs(files[number]):
            first = files[stems.index(stem)]
            message = (
                f"{first!r} and {files[number]!r} would both become the samples of {stem!r}: rename "
                f"one of them, or tokenize them to two folders"
            )
            raise InvalidArgument(message)
    return ForagerEnding(sample_size, tuple(stems), bool(form.layout.aligned))


@dataclass(frozen=True, slots=True)
class ForagerEnding(Ending):
    """The last step of the writing of samples of Forager."""

    sample_size: int
    """The number of tokens of a sample."""

    stems: tuple[str, ...]
    """For each source file, what the name of its file of samples begins with."""

    has_schema: bool
    """True if samples have arrays behind their tokens."""

    @property
    def names(self) -> tuple[str, ...]:
        """The files of samples, the files of the index, and a hidden document."""
        schema = (_SCHEMA,) if self.has_schema else ()
        return (*self.data, _FILES, _PLACES, *schema, HIDDEN_DOCUMENT)

    @property
    def data(self) -> tuple[str, ...]:
        """The files of samples, one for each source file."""
        names = (f"{_SAMPLES}/{stem}-tokenized-samples.bin" for stem in self.stems)
        return tuple(dict.fromkeys(names))

    @property
    def replaces_parts(self) -> bool:
        """True: the samples have all that the parts have, but for what is dropped."""
        return True

    def end(self, folder: str, form: FileFormat, paths: Sequence[str], origin: Origin) -> None:
        """Write the samples, then the index, then the document."""
        assert isinstance(form, Tokens)
        for name in (_SAMPLES, _INDEX):
            os.makedirs(os.path.join(folder, name), exist_ok=True)
        layout = form.layout
        with _Samples(folder, [f"{_SAMPLES}/{stem}-tokenized-samples.bin" for stem in self.stems]) as samples:
            for blocks, files in _sample_blocks(layout, paths, self.sample_size):
                for first, last in _runs(files):
                    samples.add(int(files[first]), blocks[first:last])
        if self.has_schema:
            _write(os.path.join(folder, _SCHEMA), _schema(layout, self.sample_size))
        parts = [facts_of(path) for path in paths]
        document = described(form, origin, parts, tokenizer_name=None)
        document = msgspec.structs.replace(
            document, parts=[], sample_size=self.sample_size, dropped=document.tokens % self.sample_size
        )
        write_document(folder, document, HIDDEN_DOCUMENT)


class _Samples:
    """The files of samples and of the index, which get their names when all of them are whole."""

    def __init__(self, folder: str, names: Sequence[str]) -> None:
        """Begin all files.

        Args:
            folder: the folder.
            names: the name of the file of samples of each source file.
        """
        self._folder = folder
        self._names = list(names)
        self._sizes = dict.fromkeys(names, 0)
        self._numbers: dict[str, int] = {}
        self._open: tuple[str, BinaryIO] | None = None

    def __enter__(self) -> Self:
        for name in self._sizes:
            with open(self._unfinished(name), "wb"):
                pass
        self._places = open(self._unfinished(_PLACES), "wb")
        return self

    def add(self, file: int, samples: NDArray[np.uint8]) -> None:
        """Write samples of one size.

        Args:
            file: the number of the source file that they belong to.
            samples: the bytes of the samples, (samples, bytes).
        """
        name = self._names[file]
        if self._open is None or self._open[0] != name:
            if self._open is not None:
                self._open[1].close()
            self._open = name, open(self._unfinished(name), "ab")  # noqa: SIM115 - closed below
        self._open[1].write(samples.data)
        count, size = samples.shape
        places = np.empty((count, 3), "<u8")
        places[:, 0] = self._numbers.setdefault(name, len(self._numbers))
        places[:, 1] = self._sizes[name] + size * np.arange(count)
        places[:, 2] = size
        self._sizes[name] += count * size
        self._places.write(places.data)

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if self._open is not None:
            self._open[1].close()
        self._places.close()
        if error is not None:
            for name in (*self._sizes, _PLACES):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._unfinished(name))
            return
        for name in self._sizes:
            _put(self._unfinished(name), os.path.join(self._folder, name))
        _write(os.path.join(self._folder, _FILES), "".join(f"{name}\n" for name in self._numbers))
        _put(self._unfinished(_PLACES), os.path.join(self._folder, _PLACES))

    def _unfinished(self, name: str) -> str:
        return os.path.join(self._folder, f"{name}.tmp")


def _sample_blocks(
    layout: StoreLayout, paths: Sequence[str], sample_size: int
) -> Iterator[tuple[NDArray[np.uint8], Int64s]]:
    """Yield samples, each as bytes, with the number of the source file that each belongs to.

    Args:
        layout: the arrays of the parts.
        paths: the paths of the tokens of the parts.
        sample_size: the number of tokens of a sample.
    """
    arrays = [("bin", layout.dtype), *layout.aligned]
    width = sample_size * sum(dtype.itemsize for _, dtype in arrays)
    step = max(1, _BYTES_AT_ONCE // width)
    rests = [np.empty(0, dtype) for _, dtype in arrays]
    for path in paths:
        stem = os.path.splitext(path)[0]
        own = [np.fromfile(f"{stem}.{suffix}", dtype) for suffix, dtype in arrays]
        before = len(rests[0])
        joined = [np.concatenate(pair) for pair in zip(rests, own, strict=True)]
        count = len(joined[0]) // sample_size
        files = _files_of_samples(stem, count, before, sample_size)
        for first in range(0, count, step):
            last = min(first + step, count)
            rows = [
                array[first * sample_size : last * sample_size].reshape(last - first, -1).view(np.uint8)
                for array in joined
            ]
            yield np.ascontiguousarray(np.concatenate(rows, axis=1)), files[first:last]
        rests = [array[count * sample_size :].copy() for array in joined]


def _files_of_samples(stem: str, count: int, before: int, sample_size: int) -> Int64s:
    """Return for each sample the number of the source file of the document that completes it.

    Args:
        stem: the path of a part without its suffix.
        count: the number of samples that end in the part.
        before: the number of tokens that were left of the parts before.
        sample_size: the number of tokens of a sample.
    """
    ends = before + np.cumsum(np.fromfile(f"{stem}.lengths", "<u4").astype(np.int64))
    runs = np.fromfile(f"{stem}.sources", SOURCE_RUN)
    files = np.repeat(runs["file"].astype(np.int64), runs["count"])
    files[files == np.iinfo(np.uint32).max] = 0
    at = np.searchsorted(ends, sample_size * np.arange(1, count + 1))
    found: Int64s = files[at]
    return found


def _runs(files: Int64s) -> Iterator[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(files)) + 1
    bounds = [0, *edges.tolist(), len(files)]
    return pairwise(bounds)


def _schema(layout: StoreLayout, sample_size: int) -> str:
    """Return the description of a sample: its tokens, then each array."""
    described_arrays: list[dict[str, Any]] = []
    offset = 0
    for name, dtype in (("tokens", layout.dtype), *layout.aligned):
        described_arrays.append({"name": name, "dtype": dtype.name, "offset": offset})
        offset += sample_size * dtype.itemsize
    schema = {"sample_size": sample_size, "arrays": described_arrays, "total_bytes_per_sample": offset}
    return json.dumps(schema, indent=2)


def _write(path: str, text: str) -> None:
    # Names of files may be no UTF-8: their bytes are written as they are.
    with open(f"{path}.tmp", "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    _put(f"{path}.tmp", path)


def _put(temporary: str, path: str) -> None:
    """Give a whole file its name, so that it outlasts a crash of the machine."""
    with open(temporary, "rb") as file:
        os.fsync(file.fileno())
    put_in_place(temporary, path)
