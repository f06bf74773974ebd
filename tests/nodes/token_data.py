"""Token files whose form stands in a file beside them, for tests of what reads documents."""

from __future__ import annotations

import itertools
import json
import os
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import seekable as sk
from seekable.formats.contract import Reading
from seekable.formats.tokens.token_format import Tokens
from seekable.formats.tokens.words import AlignedFile, SideFile, TokenSchema, token_survey
from seekable.index.opening import open_files
from seekable.storage.listing import FoundFiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.formats.tokens.token_source import TokenSource
    from seekable.index.finder import ForwardReader, Survey

FORM = Tokens()


@dataclass(frozen=True)
class FormBeside:
    """A surveyor: ``FILE.form`` has the words and the schema."""

    name: str = "tokens"

    def check_head(self, head: bytes, path: str) -> None:
        """Accept every file."""

    def survey(self, source: ForwardReader) -> Survey:
        form = json.loads(Path(source.path + ".form").read_text())
        explicit = form["explicit"] or [None, None]
        payloads, counts = (None if numbers is None else np.array(numbers, np.uint64) for numbers in explicit)
        schema = TokenSchema.decode(form["schema"].encode())
        names = [aligned.file for aligned in schema.aligned]
        stats = [(name, os.stat(Path(source.path).parent / name)) for name in names]
        sides = tuple(SideFile(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
        bounds = np.array(form["bounds"], np.uint64)
        schema = replace(schema, beside=sides)
        return token_survey(bounds, schema, digest=bytes(8), payloads=payloads, counts=counts)


def write_tokens(path: Path, documents: Sequence[Any], schema: TokenSchema, *, header: int = 0) -> None:
    """Write documents, given as dicts of arrays, in the form of a schema.

    Args:
        path: the file.
        documents: the arrays of each document.
        schema: the form; with explicit words, the documents lie in the file in descending order.
        header: the bytes before the first document.
    """
    out, bounds, starts = bytearray(b"\x7f" * header), [header], {}
    numbers = range(len(documents))
    for number in reversed(numbers) if schema.explicit else numbers:
        out += b"\x7f" * schema.skip
        starts[number] = len(out)
        out += (documents[number]["tokens"] + schema.minus).astype(schema.dtype).tobytes()
        for name, dtype in schema.inside:
            out += documents[number][name].astype(dtype).tobytes()
        bounds.append(len(out))
    for aligned in schema.aligned:
        parts = [document[aligned.name].astype(aligned.dtype).tobytes() for document in documents]
        (path.parent / aligned.file).write_bytes(b"\x7f" * aligned.first + b"".join(parts))
    path.write_bytes(out)
    counts = [len(document["tokens"]) for document in documents]
    explicit = [[starts[number] for number in numbers], counts] if schema.explicit else None
    form = {"bounds": bounds, "explicit": explicit, "schema": schema.encode().decode()}
    Path(f"{path}.form").write_text(json.dumps(form))


def write_pair(path: Path, documents: Sequence[Any], dtype: str = "<u2") -> None:
    """Write documents, given as arrays, as a pair of Megatron: ``PREFIX.bin``, and ``PREFIX.idx`` beside."""
    arrays = [np.asarray(document).astype(dtype) for document in documents]
    path.write_bytes(b"".join(array.tobytes() for array in arrays))
    sizes, count = [array.size for array in arrays], len(arrays)
    starts = np.cumsum([0, *sizes])[:-1] * np.dtype(dtype).itemsize
    head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, {"<u2": 8, "<i4": 4}[dtype], count, count + 1)
    numbers = ((sizes, "<i4"), (starts, "<i8"), (np.arange(count + 1), "<i8"))
    path.with_suffix(".idx").write_bytes(
        head + b"".join(np.asarray(values, kind).tobytes() for values, kind in numbers)
    )


def open_source(folder: Path, names: Sequence[str], **options: Any) -> TokenSource:
    """Return the source of token files of a folder."""
    files = open_files([FoundFiles(str(folder), tuple(names))], FormBeside(), jobs=1)
    reading = Reading(shown="'here'", **options)
    FORM.check(reading)
    return FORM.leaf(files, reading)


def simple_source(folder: Path, lengths: Sequence[int], *, dtype: str = "<u2") -> TokenSource:
    """Write one file of documents of some lengths, whose tokens count on from 0, and return its source."""
    ends = np.cumsum([0, *lengths]).tolist()
    documents = [{"tokens": np.arange(a, b)} for a, b in itertools.pairwise(ends)]
    write_tokens(folder / "simple.bin", documents, TokenSchema(dtype))
    return open_source(folder, ["simple.bin"])


def dataset_of(source: TokenSource) -> sk.Dataset:
    """Return the dataset of a source."""
    return sk.Dataset(source)


MASK = AlignedFile("mask", "|u1", "mask.u1", 3)
"""An aligned file with a header of three bytes."""
