"""The written folders of the corpus with which ``resume=True`` goes on: manifests, files, states of lanes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tests.corpus.nodes import DOCUMENTS
from tests.formats.shar.shar_folders import cut

import seekable as sk
from seekable.storage.file_names import INDEX_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FOLDER = "written"

_RECORDS = sk.from_sequence(
    [{"key": f"k{row}", "text": f"text {row}", "n": str(row)} for row in range(12)], version="records"
)


_CUTS = sk.from_sequence([cut(number, custom={"lang": f"l{number}"}) for number in range(7)], version="cuts")


def without_key(record: dict[str, str]) -> dict[str, str]:
    """Return a sample whose key is the number that it gets."""
    return {"txt": record["text"]}


def _stream() -> sk.Stream:
    return _RECORDS.stream(lanes=2, epochs=1).shuffle(buffer=3, seed=1)


WRITES: dict[str, Callable[[Path], object]] = {
    "jsonl": lambda folder: _RECORDS.write_jsonl(folder, rows_per_file=5, jobs=1, resume=True),
    "shar": lambda folder: _CUTS.write_shar(folder, {"lang": "jsonl"}, shard_size=3, jobs=1, resume=True),
    "tar": lambda folder: _RECORDS.write_tar(folder, rows_per_file=5, jobs=1, resume=True),
    "parquet": lambda folder: _RECORDS.write_parquet(folder, rows_per_file=5, jobs=1, resume=True),
    "tokens": lambda folder: DOCUMENTS.write_tokens(
        folder,
        jobs=1,
        resume=True,
        store=sk.formats.TokenStore(dtype="uint16", rows_per_file=5, align=["mask"]),
    ),
    "stream-jsonl": lambda folder: _stream().write_jsonl(folder, rows_per_file=4, resume=True),
    "stream-parquet": lambda folder: _stream().write_parquet(folder, rows_per_file=4, resume=True),
    "stream-shar": lambda folder: _CUTS.stream(lanes=2, epochs=1).write_shar(
        folder, {"lang": "jsonl"}, shard_size=3, resume=True
    ),
    "stream-tar": lambda folder: _stream().map(without_key).write_tar(folder, rows_per_file=4, resume=True),
    "stream-tokens": lambda folder: DOCUMENTS.stream(lanes=2, epochs=1).write_tokens(
        folder, resume=True, store=sk.formats.TokenStore(dtype="uint16", rows_per_file=4)
    ),
}
"""Writes into a folder that go on with what is there, by the name of the folder."""


SAME_BYTES = {
    "jsonl": "part-00001-of-00003.jsonl",
    "shar": "cuts.000001.jsonl",
    "tar": "part-00001-of-00003.tar",
    "tokens": "part-000001.bin",
}
"""A file of each folder whose bytes depend on this library alone: it comes back as it was."""


def write(name: str, root: Path) -> None:
    """Write a folder, or what it lacks; its own index has times of its own, and is left out."""
    folder = root / FOLDER / name
    WRITES[name](folder)
    shutil.rmtree(folder / INDEX_FOLDER, ignore_errors=True)
