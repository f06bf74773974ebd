"""Fuzzing Kaldi: any bytes as an object of any holder, as an archive, and as a script."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import tracemalloc
import warnings
from typing import TYPE_CHECKING, Any

from tests.fuzz.corpus import mutated
from tests.kaldi.holder_cases import CASES, Pipe, dumped, plain

import seekable as sk
from seekable import kaldi
from seekable.formats.kaldi.cursor import BufferedCursor

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seekable.kaldi import Cursor, Holder

PIECES = (
    *(b"\0B", b"\4", b"\x08", b"\4\1\0\0\0", b"\4\0\0\0\0", b"\4\xff\xff\xff\x7f", b"\4\xff\xff\xff\xff"),
    *(b"\4\0\0\0\x80", b"\x7f" * 4, b"\xff" * 8, bytes(16), b"FM ", b"DM ", b"FV ", b"CM ", b"CM2 ", b"CM3 "),
    *(b"SM ", b"SV ", b"FP ", b"RIFF", b"WAVE", b"fmt ", b"data", b"\x93NUMPY\1\0v\0", b"\x14\x11\x22\x20"),
    *(
        b"[",
        b"]",
        b" [ ",
        b" ]\n",
        b";",
        b" ; ",
        b"\n",
        b"\r\n",
        b" ",
        b"\t",
        b",",
        b"-",
        b"0",
        b"-0",
        b"1e999",
    ),
    *(
        b"inf",
        b"nan",
        b"T",
        b"F",
        b"1 2 ",
        b"0.5 ",
        b"007",
        b"9" * 30,
        b"dim=5",
        b"rows=2147483647 ",
        b"a" * 200,
    ),
    *(
        b"k1 ",
        b"k2 ",
        b"k1 x.ark:3\n",
        b"k2 x.ark[0:1]\n",
        b"x.ark:99999999999999999999\n",
        b"cat x |\n",
        b"{}",
    ),
)
"""What files are made of: what matters to the readers."""

_OBJECTS = 25
"""Objects, or tables, of one case."""

_MOST_BYTES = 8 << 20
_BYTES_OF_ONE = 400
"""The memory that reading may take: so much, and so much for each byte of the file."""


def objects(folder: Path, rng: random.Random) -> None:  # noqa: ARG001 - as targets are
    """Read damaged objects with their holders and with others: from memory, files and pipes alike."""
    for _ in range(_OBJECTS):
        name, data = _object(rng)
        if rng.random() < 0.3:
            name = rng.choice(kaldi.holder_names())
        holder = kaldi.find_holder(name)
        found = [_outcome(holder.read, cursor, len(data)) for cursor in _cursors(data)]
        assert all(each == found[0] for each in found), (name, data, found)
        for cursor in _cursors(data):
            _check_skips(holder, cursor, data, found[0])
        if isinstance(holder, kaldi.SupportsRange):
            part = kaldi.parse_range(rng.choice(["0:0", "1:3,0:1", ":,1:2", "5:9", "0:99999999999"]))
            read = functools.partial(holder.read_range, part=part)
            parts = [_outcome(read, cursor, len(data)) for cursor in _cursors(data)]
            assert all(each == parts[0] for each in parts), (name, data, part, parts)


def tables(folder: Path, rng: random.Random) -> None:
    """Read damaged archives, and scripts that point into them, in order and by key."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        for _ in range(_OBJECTS // 8):
            _one_table(folder, rng)
    finally:
        os.chdir(before)


def _one_table(folder: Path, rng: random.Random) -> None:
    name, data = _archive(rng)
    script = b"".join(b"k%d x.ark:%d\n" % (n, rng.randrange(len(data) + 2)) for n in range(4))
    for _ in range(rng.choice([0, 1, 3])):
        script = mutated(rng, script) if rng.random() < 0.7 else script + rng.choice(PIECES)
    (folder / "x.ark").write_bytes(data)
    (folder / "x.scp").write_bytes(script)
    for kind, file in (("ark", "x.ark"), ("scp", "x.scp"), ("scp", "x.ark"), ("ark", "x.scp")):
        option = rng.choice(["", ",p", ",bg", ",s", ",s,cs", ",o", ",p,bg"])
        with (
            _only_our_errors(len(data) + len(script)),
            kaldi.SequentialReader(f"{kind}{option}:{file}", name) as reader,
        ):
            while not reader.done:
                with contextlib.suppress(sk.SeekableError):
                    assert reader.key
                    reader.value  # noqa: B018 - reading it is the test
                reader.next()
        for key in ("k1", "k2", "none"):
            with (
                _only_our_errors(len(data) + len(script)),
                kaldi.RandomAccessReader(f"{kind}{option}:{file}", name) as table,
            ):
                if key in table:
                    table[key]


def _object(rng: random.Random) -> tuple[str, bytes]:
    """A holder, and the bytes of one of its objects, changed; or bytes of anything."""
    case = rng.choice(CASES)
    binary = rng.random() < 0.6 or (case.binary is not None and case.text is None)
    data = dumped(case.holder, case.value, binary=binary)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 5])):
        if rng.random() < 0.5:
            data = mutated(rng, data)
        else:
            at = rng.randrange(len(data) + 1)
            data = data[:at] + rng.choice(PIECES) + data[at + rng.choice([0, 1, 4, 5]) :]
    if rng.random() < 0.1:
        data = b"".join(rng.choice(PIECES) for _ in range(rng.randrange(20)))
    return case.holder, data


def _archive(rng: random.Random) -> tuple[str, bytes]:
    name, first = _object(rng)
    parts = [b"k1 ", first]
    for number in range(rng.randrange(4)):
        same = [case for case in CASES if case.holder == name]
        parts += [b"k%d " % (number + 2), dumped(name, rng.choice(same).value)]
    data = b"".join(parts)
    return name, mutated(rng, data) if rng.random() < 0.3 else data


def _cursors(data: bytes) -> Iterator[Cursor]:
    """Yield every kind of cursor over the same bytes."""
    yield kaldi.MemoryCursor(data, name="x")
    yield kaldi.MemoryCursor(bytearray(data), name="x")
    yield kaldi.FileCursor(io.BytesIO(data), name="x")
    yield kaldi.FileCursor(io.BufferedReader(Pipe(data)), name="x")
    yield BufferedCursor(io.BytesIO(data), name="x")


def _outcome(read: Callable[[Cursor], Any], cursor: Cursor, size: int) -> Any:
    """The value that is read and where the cursor stands then, or that an error of ours was raised."""
    try:
        with _bounded(size):
            value = read(cursor)
    except sk.SeekableError:
        return "refused"
    return repr(plain(value)), cursor.position  # nan is not equal to itself


def _check_skips(holder: Holder, cursor: Cursor, data: bytes, found: Any) -> None:
    """`skip` and `shape` look at less than `read`; where that finds an object, they end where it does."""
    start = cursor.position
    for move in (holder.skip, holder.shape):
        if cursor.position != start:
            if not isinstance(cursor, kaldi.MemoryCursor):
                return
            cursor.seek(start)
        end = _outcome(move, cursor, len(data))
        if found != "refused":
            assert end != "refused", (holder.name, data)
            assert end[1] == found[1], (holder.name, data, end, found)


@contextlib.contextmanager
def _only_our_errors(size: int) -> Iterator[None]:
    with _bounded(size), contextlib.suppress(sk.SeekableError):
        yield


@contextlib.contextmanager
def _bounded(size: int) -> Iterator[None]:
    """Fail if memory grows by more than bytes of such a number can explain."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", sk.errors.KaldiWarning)
        tracemalloc.start()
        try:
            yield
            assert tracemalloc.get_traced_memory()[1] < _MOST_BYTES + _BYTES_OF_ONE * size
        finally:
            tracemalloc.stop()
