"""Damage of every format, of the lists and indexes that lie beside data, and of our own index."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.format_cases import Case, source_of

import seekable as sk
from seekable.errors import SeekableError
from seekable.testing import one_answer

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator


def damaged_bytes(rng: random.Random, data: bytes) -> bytes:
    """Return the bytes of a file with one damage: a flipped bit, a cut, or a changed part."""
    if not data:
        return rng.randbytes(rng.randrange(1, 9))
    at = rng.randrange(len(data))
    to = min(len(data), at + rng.choice([1, 2, 8, 64, 300]))
    flipped = bytes([data[at] ^ 1 << rng.randrange(8)])
    return rng.choice(
        [
            data[:at] + flipped + data[at + 1 :],
            data[:at],
            data[:at] + bytes(to - at) + data[to:],
            data[:at] + rng.randbytes(to - at) + data[at:],
            data[:at] + data[to:],
            data[:at] + data[at:to] * 2 + data[to:],
        ]
    )


def damage(rng: random.Random, paths: list[Path]) -> Path:
    """Damage one of some files, which keeps its time, as on a failing disk; return its path."""
    path = rng.choice(sorted(paths))
    before = path.stat()
    path.write_bytes(damaged_bytes(rng, path.read_bytes()))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return path


def opener(case: Case, folder: Path) -> one_answer.Opening:
    return partial(sk.open, source_of(case.asked, str(folder)), index=sk.Index(jobs=1), **case.options)


INDEXES = {".seekable", ".seekable.idx"}
"""The folders of an index, beside data and beside a list of files."""


def files_of(folder: Path, *, of_index: bool) -> list[Path]:
    """Return the files of data below a folder, or those of its indexes."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in files if of_index != INDEXES.isdisjoint(path.parts)]


@contextlib.contextmanager
def written(case: Case) -> Iterator[Path]:
    """Write the files of a case into a folder, which is the current one meanwhile."""
    before, folder = Path.cwd(), Path(tempfile.mkdtemp())
    try:
        case.write(folder)
        os.chdir(folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield folder
    finally:
        os.chdir(before)
        shutil.rmtree(folder)


def data(case: Case, rng: random.Random) -> None:
    """Damage data before it is indexed: it is refused, or each row gives one answer in all ways."""
    with written(case) as folder:
        path = damage(rng, files_of(folder, of_index=False))
        try:
            one_answer.check(opener(case, folder))
        except AssertionError as error:
            error.add_note(f"{path.relative_to(folder)} was damaged")
            raise


def index(case: Case, rng: random.Random) -> None:
    """Damage the index: records stay what they were; the index is rebuilt, or refused by name."""
    with written(case) as folder:
        opening = opener(case, folder)
        right = one_answer.alone(opening(), range(len(opening())))
        path = damage(rng, files_of(folder, of_index=True))
        try:
            ds = opening()
            found = one_answer.alone(ds, range(len(ds)))
        except SeekableError:
            return
        given = {row: each for row, each in found.items() if not isinstance(each, one_answer.Refused)}
        wrong = one_answer.difference(right, given)
        assert wrong is None, f"{path.relative_to(folder)} was damaged: {wrong}"
