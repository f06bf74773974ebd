"""The formats of the corpus: data, the index beside it, and what a dataset over it is."""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING, Any

from tests.corpus.held import plain, set_times
from tests.format_cases import CASES, Case, source_of
from tests.formats.shar.shar_folders import write_shar
from tests.storage.compressing import compressed

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HEAD = 3
"""The number of records that are written down from the start of each dataset; and the last one."""

FOLDER = "formats"


def _blocks(folder: Path) -> None:
    """Write compressed lines in several members and frames, between which seek points lie."""
    for kind in ("gz", "zst"):
        lines = [f'{{"id": "{kind}-{row}", "text": "{"x" * (row % 60)}"}}\n'.encode() for row in range(120)]
        blocks = [b"".join(lines[at : at + 40]) for at in range(0, len(lines), 40)]
        (folder / f"{kind}.jsonl.{kind}").write_bytes(compressed(blocks, "gz" if kind == "gz" else "zst"))


def _with(name: str, **options: Any) -> Case:
    case = CASES[name]
    return Case(case.write, case.asked, {**case.options, **options}, case.near)


CSV: dict[str, Any] = {"format": sk.formats.Csv(delimiter="|", quote="'", encoding="latin-1")}

FORMATS: dict[str, Case] = {
    **CASES,
    "jsonl: blocks": Case(_blocks, "DIR/*.jsonl.*", {"key": "id"}),
    "jsonl: decode": _with("jsonl", decode="bytes", key=None, storage=sk.Storage(max_open_files=2)),
    "csv: options": Case(
        lambda folder: (folder / "a.txt").write_bytes("id|text\n1|'ä|b'\n2|'c'\n".encode("latin-1")),
        "DIR/a.txt",
        CSV,
    ),
    "parquet: columns": Case(
        CASES["parquet"].write, "DIR/a.parquet", {"columns": ["text", "id"], "decode": "numpy", "key": "text"}
    ),
    "parquet: strict": _with("hive", format=sk.formats.Tables(strict=True)),
    "tar: key": _with(
        "tar",
        format=sk.formats.Tar(group="key", splitname="last", missing="none"),
        columns=["txt", "__key__"],
    ),
    "tar: webdataset": _with("tar", decode="webdataset", format=sk.formats.Tar(concatenated=True)),
    "siblings: suffix": _with("siblings", format=sk.formats.Tar(suffix="_more", missing="none")),
    "ark: holder": _with("ark", format=sk.formats.Kaldi(holder="matrix")),
    "kaldi-directory: columns": _with("kaldi-directory", columns=["text", "features"]),
    "shar: columns": Case(lambda folder: write_shar(folder, [3]), "DIR", {"columns": ["recording"]}),
}
"""What is opened, by name: each format with its usual arguments, and some with all others."""


def slug(name: str) -> str:
    """Return the name of the folder of a format.

    Example:
        >>> slug("tokens: llm.c")
        'tokens-llm-c'
    """
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")


def write_data(name: str, root: Path) -> None:
    """Write the data of a format."""
    folder = root / FOLDER / slug(name)
    folder.mkdir(parents=True)
    FORMATS[name].write(folder)
    set_times(folder)


@contextlib.contextmanager
def opened(name: str, root: Path) -> Iterator[sk.Dataset]:
    """Open the data of a format; scripts of Kaldi name files from the current folder."""
    case, folder = FORMATS[name], root / FOLDER / slug(name)
    with contextlib.ExitStack() as stack:
        if case.near:
            before = os.getcwd()
            os.chdir(folder)
            stack.callback(os.chdir, before)
        yield stack.enter_context(sk.open(source_of(case.asked, str(folder)), **case.options))


def known(ds: sk.Dataset) -> dict[str, Any]:
    """Return all that is written down of a dataset over files."""
    return {
        "fingerprint": ds.fingerprint,
        "description": ds._node.describe(None),
        "records": len(ds),
        "head": [plain(ds[row]) for row in range(min(_HEAD, len(ds)))],
        "last": plain(ds[-1]),
        "keys": _keys(ds),
    }


def _keys(ds: sk.Dataset) -> list[Any] | None:
    """Return some keys of a dataset, each of which finds its record; None where there are none."""
    try:
        keys = ds.keys()
    except sk.errors.InvalidArgument:
        return None
    some = [keys[0], keys[len(keys) - 1]]
    assert [plain(each) for each in ds.key(some)] == [plain(ds[0]), plain(ds[-1])]
    return some
