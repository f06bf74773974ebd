"""How the corpus is held: one archive of files, and for each kind of thing a document of what is known of it.

``files.tar.xz`` has the data, the indexes, the pipeline files and the saved states, and when each file was
changed, because an index knows its files by that. The documents beside it have descriptions, fingerprints,
states and records as people read them. All are the same bytes whenever the same code writes them.
"""

from __future__ import annotations

import functools
import io
import itertools
import json
import os
import secrets
import tarfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HOME = Path(__file__).parent

FILES = "files.tar.xz"

CHANGED = 1_700_000_000
"""When each file of the corpus was changed, in seconds since 1970: what indexes say of the files."""

WRITTEN = CHANGED + 1000
"""When the corpus was written."""

FORMER = "/seekable/corpus"
"""The folder in which the corpus was written, as its documents call it."""


@contextmanager
def at_one_moment() -> Iterator[None]:
    """Let the clock stand still, and names be no random ones, while the corpus is written.

    The times of indexing are parts of an index.
    """
    names = itertools.count()
    with (
        mock.patch.object(secrets, "token_hex", lambda size=16: f"{next(names):0{2 * size}x}"),
        mock.patch.object(time, "time", return_value=float(WRITTEN)),
        mock.patch.object(time, "time_ns", return_value=WRITTEN * 10**9),
    ):
        yield


def set_times(folder: Path) -> None:
    """Let all files below a folder be as old as the corpus."""
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (CHANGED, CHANGED))


def pack(folder: Path, home: Path = HOME) -> None:
    """Write all files below a folder into the archive; in JSON the former folder stands for it."""
    with tarfile.open(home / FILES, "w:xz", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                content = path.read_bytes()
                if path.suffix == ".json":
                    content = content.replace(os.fsencode(folder), FORMER.encode())
                assert os.fsencode(folder) not in content, f"{path} holds the folder that it was written in"
                member = tarfile.TarInfo(path.relative_to(folder).as_posix())
                member.size, member.mtime = len(content), CHANGED
                archive.addfile(member, io.BytesIO(content))


def unpack(folder: Path) -> None:
    """Write the files of the corpus into a folder, each as old as its index says."""
    with tarfile.open(HOME / FILES) as archive:
        archive.extractall(folder, filter="data")


def write_document(name: str, known: Mapping[str, Mapping[str, Any]], root: Path, home: Path = HOME) -> None:
    """Write what is known of the things of one kind, by their names: a line for each fact."""
    things = []
    for thing, facts in known.items():
        lines = ",\n".join(f" {as_text(fact)}: {as_text(value)}" for fact, value in facts.items())
        things.append(f"{as_text(thing)}: {{\n{lines}\n}}")
    text = "{\n" + ",\n".join(things) + "\n}\n"
    (home / f"{name}.json").write_text(relative(text, root), encoding="utf-8")


@functools.cache
def read_document(name: str) -> dict[str, dict[str, Any]]:
    """Return what is known of the things of one kind, by their names."""
    document: dict[str, Any] = json.loads((HOME / f"{name}.json").read_text(encoding="utf-8"))
    return document


def as_text(value: Any) -> str:
    """Return a value as JSON, in the order in which it is: equal texts are equal byte for byte."""
    return json.dumps(value, ensure_ascii=False)


def relative(text: str, root: Path) -> str:
    """Return a text in which the folder of the corpus has its former name."""
    return text.replace(str(root), FORMER)


def moved(value: Any, root: Path) -> Any:
    """Return a document in which the former folder of the corpus is the one that it lies in."""
    return json.loads(as_text(value).replace(FORMER, str(root)))


def plain(value: Any) -> Any:
    """Return a value as JSON that tells types and contents apart: arrays, bytes, tuples, holes, objects."""
    match value:
        case None | bool() | int() | float() | str():
            made: Any = value
        case np.ndarray():
            made = {"array": value.dtype.str, "shape": list(value.shape), "values": value.tolist()}
        case bytes():
            made = {"bytes": value.decode("latin-1")}
        case dict():
            made = {str(name): plain(held) for name, held in value.items()}
        case tuple():
            made = {"tuple": [plain(held) for held in value]}
        case list():
            made = [plain(held) for held in value]
        case _:
            made = {"object": repr(value)}
    return made
