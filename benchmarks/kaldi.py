"""Tables of Kaldi against kaldi_native_io: read in order and by key, written, and opened.

Objects of kaldi_native_io live in the memory of its reader until the next one is read; those of seekable are
the caller's own. What is timed are the loops that its documentation shows, which keep nothing.
"""

from __future__ import annotations

import collections
import functools
import importlib
import os
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.data import placed
from benchmarks.measure import Contestant, Row, Target, absolute, missing, race, relative, shown
from benchmarks.opening import opened

import seekable as sk
from seekable import kaldi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.data import Data

PEER = "kaldi_native_io 1.23.0"
_SHAPE = (500, 80)
_LOOKUPS = 20_000
_MOST_ROUNDS = 5
_NOT_SLOWER, _THRICE, _TENFOLD = (Target("at least", bound) for bound in (1, 3, 10))


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of table."""

    name: str
    """The name in the table of results."""

    holder: str
    peer: str
    """The name of the type in the classes of the peer."""

    value: Any
    """The object of every entry."""

    count: int
    """The number of entries."""

    text: bool = False
    method: int | None = None
    """The method of compression."""

    in_order: Target | None = _NOT_SLOWER
    by_key: Target | None = None
    written: Target | None = None
    """The targets of reading in order, by key from a script, and of writing; None: not measured."""

    def options(self) -> dict[str, Any]:
        """Return the options of the holder."""
        return {} if self.method is None else {"method": self.method}


def kinds() -> Iterator[Kind]:
    """Yield the tables that are measured."""
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=_SHAPE).astype(np.float32)
    ids = rng.integers(0, 6000, 500)
    frames = [
        [(int(i), float(w)) for i, w in zip(rng.integers(0, 6000, 3), rng.random(3, np.float32), strict=True)]
        for _ in range(500)
    ]
    shape = " x ".join(map(str, _SHAPE))
    make = functools.partial(Kind, by_key=_THRICE, written=_NOT_SLOWER)
    yield make(f"float matrices {shape}", "matrix", "FloatMatrix", matrix, 400)
    yield make(f"double matrices {shape}", "double-matrix", "DoubleMatrix", matrix.astype(np.float64), 200)
    for name, method in (("CM", 2), ("CM2", 3), ("CM3", 5)):
        full = f"compressed matrices {shape}, {name}"
        yield make(full, "compressed-matrix", "FloatMatrix", matrix, 200, method=method, by_key=_NOT_SLOWER)
    yield make("vectors of 500 int32", "int32-vector", "Int32Vector", ids.astype(np.int32), 4000)
    yield make("vectors of 400 floats", "vector", "FloatVector", matrix.ravel()[:400], 10_000)
    yield make("posteriors of 500 frames", "posterior", "Posterior", frames, 200, by_key=_NOT_SLOWER)
    yield make("int32 numbers", "int32", "Int32", 12345, 40_000, by_key=None)
    yield make("words", "token", "Token", "speaker", 40_000, by_key=None)
    text = functools.partial(make, text=True, in_order=_THRICE)
    yield text(f"float matrices {shape} as text", "matrix", "FloatMatrix", matrix, 20)
    yield make(
        "vectors of 500 int32 as text", "int32-vector", "Int32Vector", ids.astype(np.int32), 1000, text=True
    )


def rows(data: Data, peer: str = "kaldi_native_io") -> Iterator[Row]:
    """Measure tables of all kinds, and a large script, against the peer."""
    try:
        theirs: Any = importlib.import_module(peer)
    except ModuleNotFoundError:
        theirs = None
    folder = os.path.join(data.folder, "kaldi")
    rounds = min(data.sizes.rounds, _MOST_ROUNDS)
    for kind in kinds():
        count = min(kind.count, data.sizes.script_lines)
        archive, script = _made(folder, kind, count)
        yield from _in_order(kind, archive, count, theirs, rounds)
        if kind.by_key is not None:
            yield from _by_key(kind, script, count, theirs, rounds)
        yield from _written(kind, count, theirs, rounds)
    yield from _large_script(data, folder, theirs, rounds)


def _made(folder: str, kind: Kind, count: int) -> tuple[str, str]:
    """Return an archive and its script, made unless they are there."""
    stem = os.path.join(folder, f"{kind.name.replace(' ', '-').replace(',', '')}-{count}")
    archive, script = f"{stem}.ark", f"{stem}.scp"
    if os.path.exists(script):
        return archive, script
    with tempfile.TemporaryDirectory() as made:
        path = os.path.join(made, "a.ark")
        option = ",t" if kind.text else ""
        with kaldi.Writer(f"ark,scp{option}:{path},{path}.scp", kind.holder, **kind.options()) as writer:
            for number in range(count):
                writer.write(f"utt{number:07d}", kind.value)
        with open(path, "rb") as file:
            placed(archive, iter(lambda: file.read(8 << 20), b""))
        with open(f"{path}.scp", "rb") as file:
            placed(script, [file.read().replace(os.fsencode(path), os.fsencode(archive))])
    return archive, script


def _in_order(kind: Kind, archive: str, count: int, theirs: Any, rounds: int) -> Iterator[Row]:
    def ours() -> object:
        with kaldi.SequentialReader(f"ark:{archive}", kind.holder) as reader:
            return collections.deque(reader, maxlen=0)

    def peer() -> object:
        with getattr(theirs, f"Sequential{kind.peer}Reader")(f"ark:{archive}") as reader:
            return collections.deque(reader, maxlen=0)

    yield from _compared(
        f"{kind.name}, in order", kind.in_order, count, ours, peer if theirs else None, rounds
    )


def _by_key(kind: Kind, script: str, count: int, theirs: Any, rounds: int) -> Iterator[Row]:
    keys = [f"utt{number:07d}" for number in np.random.default_rng(1).permutation(count)]
    with kaldi.RandomAccessReader(f"scp:{script}", kind.holder) as mine:
        name = f"{kind.name}, by key from a script"
        if theirs is None:
            yield from _compared(name, kind.by_key, count, lambda: _each(mine, keys), None, rounds)
            return
        with getattr(theirs, f"RandomAccess{kind.peer}Reader")(f"scp:{script}") as other:
            yield from _compared(
                name, kind.by_key, count, lambda: _each(mine, keys), lambda: _each(other, keys), rounds
            )


def _each(reader: Any, keys: list[str]) -> None:
    for key in keys:
        reader[key]


def _written(kind: Kind, count: int, theirs: Any, rounds: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        option = ",t" if kind.text else ""
        keys = [f"utt{number:07d}" for number in range(count)]

        def ours() -> None:
            with kaldi.Writer(f"ark{option}:{folder}/ours.ark", kind.holder, **kind.options()) as writer:
                for key in keys:
                    writer.write(key, kind.value)

        def peer() -> None:
            name: str = kind.peer
            more: tuple[Any, ...] = ()
            if kind.method is not None:
                name, more = "CompressedMatrix", (theirs.CompressionMethod(kind.method),)
            with getattr(theirs, f"{name}Writer")(f"ark{option}:{folder}/theirs.ark") as writer:
                for key in keys:
                    writer.write(key, kind.value, *more)

        yield from _compared(
            f"{kind.name}, written", kind.written, count, ours, peer if theirs else None, rounds
        )


def _compared(
    name: str,
    target: Target | None,
    count: int,
    ours: Callable[[], object],
    peer: Callable[[], object] | None,
    rounds: int,
) -> Iterator[Row]:
    contestants = {"ours": Contestant(ours, count=count)}
    if peer is not None:
        contestants[PEER] = Contestant(peer, count=count)
    times = race(contestants, rounds=rounds)
    figure = times.median("ours") * 1e6
    if peer is None:
        yield missing(name, figure, "us", target, peer=PEER)
        return
    against = f"{PEER} {shown(times.median(PEER) * 1e6)}"
    yield relative(name, figure, "us", target, against=against, ratio=1 / times.ratio("ours", PEER))


def _large_script(data: Data, folder: str, theirs: Any, rounds: int) -> Iterator[Row]:
    """Measure how a large script is opened and a key is found, of ints that stand in one small archive."""
    lines = data.sizes.script_lines
    script = os.path.join(folder, f"large-{lines}.scp")
    archive = os.path.join(folder, "one.ark")
    if not os.path.exists(script):
        placed(archive, [b"k \0B\4\5\0\0\0"])
        placed(script, (b"utt%09d %s:2\n" % (number, os.fsencode(archive)) for number in range(lines)))
    ds = sk.open(f"scp:{script}", format=sk.formats.Kaldi(holder="int32"))
    figures = [opened(f"scp:{script}", holder="int32") for _ in range(rounds)]
    milliseconds = sorted(each["ms"] for each in figures)[rounds // 2]
    name = f"open a script of {lines:,} lines"
    yield absolute(name, milliseconds, "ms", Target("at most", 100))
    memory = sorted(each["mb"] for each in figures)[rounds // 2]
    yield absolute(f"{name}, private memory", memory, "MB", Target("at most", 50))
    keys = [f"utt{number:09d}" for number in np.random.default_rng(2).integers(0, lines, _LOOKUPS).tolist()]
    found = Contestant(lambda: [ds.key(key) for key in keys], count=_LOOKUPS)
    took = race({"ours": found}, rounds=rounds).median("ours") * 1e6
    yield absolute(f"a key of {lines:,}, and its number", took, "us", Target("at most", 20))
    yield from _compared(
        f"{name}, to the first number",
        _TENFOLD,
        1,
        lambda: sk.open(f"scp:{script}", format=sk.formats.Kaldi(holder="int32")).key(keys[0]),
        None if theirs is None else lambda: _first_number(theirs, script, keys[0]),
        rounds,
    )


def _first_number(theirs: Any, script: str, key: str) -> object:
    with theirs.RandomAccessInt32Reader(f"scp:{script}") as reader:
        return reader[key]
