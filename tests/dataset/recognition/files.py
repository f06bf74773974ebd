"""The small files of which the cases of recognition are made, and the form of a case."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from tests.formats.forager import write_data, write_index
from tests.formats.index_packs import of_lines, pack_bytes
from tests.formats.tokens.folder_writers import write_forager, write_litdata, write_mds
from tests.formats.tokens.token_formats import datatrove, megatron, numpy_file

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path

Files = Mapping[str, bytes] | Callable[["Path"], object]
"""Files by name, or a function that writes them into a folder. A name that ends in a slash is a folder."""


@dataclass(frozen=True)
class Case:
    """A source, and what ``sk.open`` makes of it in the folder that has the files."""

    name: str
    files: Files
    source: Any
    """The source; ``DIR`` in a text stands for the folder, which is the working folder too."""

    answer: str
    """The description of the dataset and its first record, or the class and the message of the error."""

    options: Mapping[str, Any] = field(default_factory=dict)


def case(name: str, files: Files, source: Any, answer: str, **options: Any) -> Case:
    """Return a case; the options are those of ``sk.open``."""
    return Case(name, files, source, answer, options)


def tar_of(members: Mapping[str, bytes]) -> bytes:
    """Return a tar file."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as file:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return sink.getvalue()


def parquet_of(table: pa.Table) -> bytes:
    """Return a file of Parquet."""
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def arrow_of(table: pa.Table) -> bytes:
    """Return a file of Arrow."""
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def described(value: object) -> bytes:
    """Return a document of JSON."""
    return json.dumps(value).encode()


def split_yaml(*splits: str) -> bytes:
    """Return the splits of a dataset of Energon, each of which has the file ``SPLIT.tar``."""
    parts = "".join(f"  {name}:\n  - {name}.tar\n" for name in splits)
    return f"exclude: []\nsplit_parts:\n{parts}".encode()


def energon(*splits: str) -> dict[str, bytes]:
    """Return a dataset of Energon with a shard of one sample for each split."""
    info = described({"energon_version": "7", "shard_counts": {f"{name}.tar": 1 for name in splits}})
    shards = {f"{name}.tar": tar_of({f"{name}.txt": b"x"}) for name in splits}
    return {".nv-meta/.info.json": info, ".nv-meta/split.yaml": split_yaml(*splits), **shards}


def wids(*shards: tuple[str, int]) -> bytes:
    """Return a list of wids."""
    listed = [{"url": url, "nsamples": count} for url, count in shards]
    return described({"__kind__": "wids-shard-index-v1", "wids_version": 1, "shardlist": listed})


def shar(*shards: str) -> dict[str, bytes]:
    """Return a Shar with a cut and a text in each shard."""
    files = {}
    for number, shard in enumerate(shards):
        files[f"cuts.{shard}.jsonl"] = b'{"id": "u%d"}\n' % number
        files[f"text.{shard}.jsonl"] = b'{"cut_id": "u%d", "text": "hi"}\n' % number
    return files


_DOCUMENTS = [np.array([1, 2], "<u2"), np.array([3], "<u2")]
_TABLE = pa.table({"a": [1], "b": ["x"]})

LINE = b'{"a": 1}\n'
OTHER = b'{"a": 2}\n'
TEXT = b"one\n"
CSV = b"a,b\n1,x\n"
TSV = b"a\tb\n1\tx\n"
PARQUET = parquet_of(_TABLE)
ARROW = arrow_of(_TABLE)
TAR = tar_of({"0.txt": b"x"})
SPLIT_TAR = tar_of({"0.jpg": b"y"})
ARK = b"u1 \0BFM \4" + np.array(1, "<i4").tobytes() + b"\4" + np.array(1, "<i4").tobytes() + bytes(4)
SCP = b"u1 a.ark:3\n"
MEGATRON = megatron(_DOCUMENTS)
DATATROVE = datatrove(_DOCUMENTS)
NPY = numpy_file(np.array([1, 2, 3], "<u2"))
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab\nsize 12345\n"
KALDI = {"wav.scp": b"u1 a.wav\n", "text": b"u1 hello\n", "utt2spk": b"u1 s1\n"}
MDS = described({"shards": [{"column_encodings": ["str"], "format": "mds"}], "version": 2})
LITDATA = described({"chunks": [{"chunk_bytes": 9, "filename": "chunk-0-0.bin"}], "config": {}})
SAVED = {
    "data-00000-of-00001.arrow": ARROW,
    "dataset_info.json": b"{}",
    "state.json": described({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}),
}

CONTENTS = {
    ".jsonl": LINE, ".ndjson": LINE, ".json": LINE, ".txt": TEXT, ".csv": CSV, ".tsv": TSV,
    ".parquet": PARQUET, ".pq": PARQUET, ".arrow": ARROW, ".feather": ARROW, ".ipc": ARROW,
    ".ark": ARK, ".tar": TAR, ".tgz": gzip.compress(TAR), ".npy": NPY,
}  # fmt: skip
"""What a file holds, by the end of its name."""

PACKERS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".zst": zstandard.compress}


def content_of(name: str) -> bytes:
    """Return what a file of that name holds: nothing where the end of its name is not known."""
    lower = name.lower()
    for end, pack in PACKERS.items():
        if lower.endswith(end):
            return pack(content_of(lower.removesuffix(end)))
    return next((content for end, content in CONTENTS.items() if lower.endswith(end)), b"")


def alone(name: str, answer: str, **options: Any) -> list[Case]:
    """Return two cases of one answer: a file that the user names, and a folder that has nothing else."""
    files = {name: content_of(name)}
    ways = (("named", name), ("in a folder", "."))
    return [case(f"{name} {how}", files, source, answer, **options) for how, source in ways]


def of_pack(folder: Path) -> None:
    """Write two files, and a pack that has them in another order."""
    write_data(folder, {"a.jsonl": LINE, "b.jsonl": OTHER})
    (folder / "c.idxpack").write_bytes(pack_bytes(of_lines(folder / "b.jsonl", folder / "a.jsonl")))


def of_two_collections(folder: Path) -> None:
    """Write a pack of two collections."""
    write_data(folder, {"a.jsonl": LINE, "b.jsonl": OTHER})
    (folder / "c.idxpack").write_bytes(pack_bytes(of_lines(folder / "a.jsonl"), of_lines(folder / "b.jsonl")))


def of_litdata(folder: Path) -> None:
    """Write tokens as LitData does."""
    write_litdata(folder, [[np.array([1, 2], "<u2")], [np.array([3], "<u2")]])


def of_mds(folder: Path) -> None:
    """Write tokens as MosaicML Streaming does."""
    write_mds(folder, {"tokens": "ndarray:uint16"}, [[{"tokens": np.array([1, 2], "<u2")}]])


def of_forager(folder: Path) -> None:
    """Write tokens as Forager does."""
    write_forager(folder, {"a-tokenized-samples.bin": [{"tokens": np.array([1, 2], "<u2")}]})


def of_lines_of_forager(folder: Path) -> None:
    """Write lines with an index of Forager."""
    write_data(folder, {"a.jsonl": LINE})
    write_index(folder, ["a.jsonl"])


def of_store(folder: Path) -> None:
    """Write a token store."""
    rows = sk.from_sequence([{"tokens": np.array([1, 2], "<u2")}])
    rows.write_tokens(folder / "t", jobs=1)


def links(folder: Path) -> None:
    """Write a file, and a link to it."""
    write_data(folder, {"deep/a.jsonl": LINE})
    (folder / "b.jsonl").symlink_to(folder / "deep/a.jsonl")


def broken_link(folder: Path) -> None:
    """Write a link to a file that is not there."""
    (folder / "a.jsonl").symlink_to("gone.jsonl")


def pipe(folder: Path) -> None:
    """Make a named pipe."""
    os.mkfifo(folder / "a.jsonl")
