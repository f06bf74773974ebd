"""The last step of a token store: the tokenizer's file, and ``tokens.json`` from the facts of parts."""

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

from seekable._spans import type_name
from seekable.errors import InvalidArgument
from seekable.formats.file_format import Ending
from seekable.formats.tokens.token_store import (
    DOCUMENT,
    FACTS,
    HIDDEN_DOCUMENT,
    SOURCE_RUN,
    TOKENIZER,
    VERSION,
    PartFacts,
    SourceFacts,
    SpanFacts,
    StoreDocument,
    TokenizerFacts,
    decode_facts,
    encoded_document,
    write_document,
)
from seekable.formats.tokens.token_store_format import TokenStoreFormat
from seekable.formats.tokens.tokenizing.engine import IdLists
from seekable.formats.tokens.tokenizing.fast_engines import StandIn, Tiktoken
from seekable.formats.tokens.tokenizing.huggingface_engine import HuggingFace
from seekable.storage.files import put_in_place
from seekable.storage.paths import output_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from seekable._typing import Int64s
    from seekable.formats.file_format import FileFormat, Origin
    from seekable.formats.tokens.token_store_format import StoreLayout
    from seekable.formats.tokens.tokenizing.engine import Engine

__all__ = ["StoreEnding", "forager_ending", "tokenizer_file"]

_SAMPLES, _INDEX = "tokenized-samples", "index"
_FILES, _PLACES, _SCHEMA = (
    f"{_INDEX}/{name}" for name in ("file_location.txt", "sample_locations.bin", "sample_schema.json")
)

_BYTES_AT_ONCE = 4 << 20


@dataclass(frozen=True, slots=True)
class StoreEnding(Ending):
    """Writes the document of a token store, as the last step."""

    tokenizer: str | None
    """The content of the tokenizer's file; None for no file."""

    @property
    def names(self) -> tuple[str, ...]:
        """The tokenizer's file if there is one, then ``tokens.json``."""
        return (DOCUMENT,) if self.tokenizer is None else (TOKENIZER, DOCUMENT)

    @property
    def data(self) -> tuple[()]:
        """No names: the parts hold the documents."""
        return ()

    @property
    def replaces_parts(self) -> bool:
        """False: the parts are the store."""
        return False

    def end(self, folder: str, form: FileFormat, paths: Sequence[str], origin: Origin) -> None:
        """Write the tokenizer's file, then ``tokens.json``."""
        assert isinstance(form, TokenStoreFormat)
        if self.tokenizer is not None:
            output_of(folder).write(os.path.join(folder, TOKENIZER), self.tokenizer.encode())
        name = None if self.tokenizer is None else TOKENIZER
        document = _described(form, origin, [_facts_of(path) for path in paths], tokenizer_name=name)
        output_of(folder).write(os.path.join(folder, DOCUMENT), encoded_document(document))


def _described(
    form: TokenStoreFormat, origin: Origin, parts: Sequence[PartFacts], *, tokenizer_name: str | None
) -> StoreDocument:
    """Return the document of a store.

    Args:
        form: the format of the parts, settled.
        origin: the description of the records.
        parts: the facts of all parts.
        tokenizer_name: the name of the tokenizer's file in the folder; None for no file.
    """
    tokenizing, engine = form.tokenizing, _tokenizer(form.tokenizing.engine)
    counts = [part.trained for part in parts if part.trained is not None]
    tokenizer = None
    if engine is not None:
        tokenizer = TokenizerFacts(
            engine.name,
            engine.digest,
            name=engine.encoding.name if isinstance(engine, Tiktoken) else "",
            library=engine.library,
            file=tokenizer_name,
            compared=form.compared,
        )
    return StoreDocument(
        seekable_tokens=VERSION,
        dtype=tokenizing.dtype.name,
        documents=sum(part.documents for part in parts),
        tokens=sum(part.tokens for part in parts),
        empty=sum(part.empty for part in parts),
        vocabulary=tokenizing.engine.vocabulary,
        eos=tokenizing.eos,
        bos=tokenizing.bos,
        column=getattr(tokenizing.documents, "column", None),
        aligned={name: type_name(dtype) for name, dtype in form.layout.aligned},
        tokenizer=tokenizer,
        source=SourceFacts(origin.fingerprint, origin.records, list(origin.files)),
        parts=list(parts),
        trained=sum(counts) if counts and len(counts) == len(parts) else None,
        spans={
            column.name: SpanFacts(
                column.how.units,
                list(column.how.labels),
                *(sum(part.spans[column.name][number] for part in parts) for number in (0, 1)),
            )
            for column in tokenizing.spans
        },
    )


def tokenizer_file(engine: Engine) -> str | None:
    """Return the content of the file that a tokenizer can be loaded from; None if it has no such file."""
    tokenizer = _tokenizer(engine)
    whole = tokenizer.reference if isinstance(tokenizer, StandIn) else tokenizer
    return whole.json if isinstance(whole, HuggingFace) else None


def _tokenizer(engine: Engine) -> Engine | None:
    """Return the tokenizer whose ids an engine makes or takes; None for ids of an unknown one."""
    return engine.tokenizer if isinstance(engine, IdLists) else engine


def _facts_of(path: str) -> PartFacts:
    """Return the facts of a part that was written, by the path of its tokens."""
    stem = os.path.splitext(path)[0]
    facts = decode_facts(output_of(stem).read(f"{stem}.{FACTS}"))
    return msgspec.structs.replace(facts, name=os.path.basename(stem))


def forager_ending(form: TokenStoreFormat, files: Sequence[str], sample_size: int) -> _ForagerEnding:
    """Return the last step that makes samples of the parts of a store.

    Args:
        form: the format of the parts.
        files: the files that records come from.
        sample_size: the number of tokens of a sample.

    Raises:
        InvalidArgument: there is no id after documents, or two source files become one file of samples.
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
    return _ForagerEnding(sample_size, tuple(stems), bool(form.layout.aligned))


@dataclass(frozen=True, slots=True)
class _ForagerEnding(Ending):
    """Writes samples of Forager in place of the parts, as the last step."""

    sample_size: int
    """The number of tokens of a sample."""

    stems: tuple[str, ...]
    """For each source file, what the name of its file of samples begins with."""

    has_schema: bool
    """True if samples have arrays after their tokens."""

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
        assert isinstance(form, TokenStoreFormat)
        for name in (_SAMPLES, _INDEX):
            os.makedirs(os.path.join(folder, name), exist_ok=True)
        layout = form.layout
        with _Samples(folder, [f"{_SAMPLES}/{stem}-tokenized-samples.bin" for stem in self.stems]) as samples:
            for blocks, files in _sample_blocks(layout, paths, self.sample_size):
                for first, last in _runs(files):
                    samples.add(int(files[first]), blocks[first:last])
        if self.has_schema:
            _write(os.path.join(folder, _SCHEMA), _schema(layout, self.sample_size))
        parts = [_facts_of(path) for path in paths]
        document = _described(form, origin, parts, tokenizer_name=None)
        document = msgspec.structs.replace(
            document, parts=[], sample_size=self.sample_size, dropped=document.tokens % self.sample_size
        )
        write_document(folder, document, HIDDEN_DOCUMENT)


class _Samples:
    """Files of samples and their index, which get their names when all are whole."""

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
            file: the index of the source file that they belong to.
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
    """Yield samples, each as bytes, with the index of the source file that each belongs to.

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
    """Return for each sample the index of the source file that completes it.

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
