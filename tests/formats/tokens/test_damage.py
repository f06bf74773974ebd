"""Torn, cut and swapped files of tokens give the right documents, or an error with the file and the byte."""

from __future__ import annotations

import csv
import gzip
import io
import pickle
import tracemalloc
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.formats.forager import write_data
from tests.formats.tokens.token_formats import (
    BOS,
    EOS,
    FORMS,
    Files,
    Form,
    drawn,
    llm_c,
    megatron,
    numpy_file,
)
from tests.thrift import some

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

CODES = {1: "|u1", 2: "|i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2", 9: "<u4"}


WORDS = (0, 1, 255, 1 << 31, 1 << 33, (1 << 62) + 1, (1 << 64) - 1)
"""Numbers that headers may lie with."""


def numbers(data: bytes, at: int, count: int, dtype: str) -> list[int]:
    """Return numbers of a file; fewer than asked for is an error, as for every plain reader."""
    assert count >= 0
    found: list[int] = np.frombuffer(data, dtype, count, at).tolist()
    return found


def slices(data: bytes, starts: Sequence[int], counts: Sequence[int], dtype: str) -> list[list[int]]:
    return [numbers(data, start, count, dtype) for start, count in zip(starts, counts, strict=True)]


def read_pair(files: Files) -> list[list[int]]:
    """Return the items of a pair, as its index says, without a check."""
    index, data = files["a.idx"], files["a.bin"]
    if index.startswith(b"TNTIDX"):
        _, code, width, count, _ = numbers(index, 8, 5, "<i8")
        plus = 0 if len(index) > 48 + 24 * count + 16 else 1
        at = 48 if plus else 56
        offsets = numbers(index, at + 8 * (count + 1), count + 1, "<i8")
        counts = [end - start for start, end in pairwise(offsets)]
        items = slices(data, [start * width for start in offsets[:-1]], counts, CODES[code])
        return [(np.array(item, np.int64) - plus).astype(CODES[code]).tolist() for item in items]
    (count,) = numbers(index, 18, 1, "<i8")
    at = 26 if len(index) == 26 + 12 * count else 34
    lengths = numbers(index, at, count, "<i4")
    return slices(data, numbers(index, at + 4 * count, count, "<i8"), lengths, CODES[index[17]])


def cut_at(tokens: list[int], starts: Sequence[int]) -> list[list[int]]:
    places = [0, *(start for start in starts if 0 < start < len(tokens)), len(tokens)]
    return [tokens[start:end] for start, end in pairwise(places)] if tokens else []


def behind(tokens: list[int]) -> list[int]:
    return [at + 1 for at, token in enumerate(tokens) if token == EOS]


def read_llm_c(files: Files) -> list[list[int]]:
    data = files["a.bin"]
    magic, _, count = numbers(data, 0, 3, "<i4")
    tokens = numbers(data, 1024, count, "<u2" if magic == 20240520 else "<u4")
    return cut_at(tokens, [at for at, token in enumerate(tokens) if token == BOS])


def read_plain(files: Files) -> list[list[int]]:
    ((name, data),) = ((name, data) for name, data in files.items() if not name.endswith(".pkl"))
    dtype = "<u2" if name == "train.bin" else "<u4"
    tokens = numbers(data, 0, -(-len(data) // np.dtype(dtype).itemsize), dtype)
    return cut_at(tokens, behind(tokens))


def read_npy(files: Files) -> list[list[int]]:
    tokens = np.load(io.BytesIO(files["a.npy"]), allow_pickle=False).tolist()
    return cut_at(tokens, behind(tokens)) if not tokens or isinstance(tokens[0], int) else tokens


def read_datatrove(files: Files) -> list[list[int]]:
    ends = numbers(files["a.ds.index"], 0, -(-len(files["a.ds.index"]) // 8), "<i8")
    width = len(files["a.ds"]) // ends[-1] if ends and ends[-1] else 4
    counts = [end - start for start, end in pairwise([0, *ends])]
    return slices(files["a.ds"], [width * end for end in [0, *ends][:-1]], counts, f"<u{width}")


def read_olmo(files: Files) -> list[list[int]]:
    lines = list(csv.reader(gzip.decompress(files["token_ids_0.csv.gz"]).decode().splitlines()))
    starts, counts = [int(line[0]) * 4 for line in lines], [int(line[1]) - int(line[0]) for line in lines]
    return slices(files["token_ids_0.npy"], starts, counts, "<u4")


READERS = {
    "llm.c": read_llm_c,
    "llm.c of 32 bits": read_llm_c,
    "nanogpt": read_plain,
    "datatrove": read_datatrove,
    "olmo": read_olmo,
    "olmo without csv": read_plain,
    "real npy": read_npy,
}
"""What reads the documents of a form in the plainest way; the others are pairs."""


def damaged(rng: np.random.Generator, files: Files, others: Files) -> Files:
    """Return files of which one is cut, longer, changed, or that of other documents."""
    made = dict(files)
    name = str(rng.choice(sorted(files)))
    data = bytearray(files[name])
    at = int(rng.integers(0, len(data) + 1))
    how = int(rng.integers(0, 7))
    if how == 0:
        data = data[:at]
    elif how == 1:
        data += rng.bytes(int(rng.integers(1, 20)))
    elif how == 2:
        data = bytearray(others[name])
    elif how == 3:
        start = int(rng.integers(0, min(len(data), 64) + 1))
        data[start : start + 8] = rng.bytes(len(data[start : start + 8]))
    elif how == 4:
        start = int(rng.integers(0, min(len(data), 64) + 1)) & ~1
        word = WORDS[int(rng.integers(0, len(WORDS)))].to_bytes(8, "little")
        data[start : start + 8] = word[: len(data[start : start + 8])]
    elif how == 5:
        data[at : at + 1] = bytes([int(rng.integers(0, 256))]) * len(data[at : at + 1])
    else:
        data[at:] = bytes(len(data) - at)
    made[name] = bytes(data)
    return made


def check_told(error: Exception, folder: Path) -> None:
    told = str(error)
    assert str(folder) in told
    assert isinstance(error, sk.errors.InvalidArgument) or " byte " in told, told


def check_damaged(folder: Path, name: str, form: Form, *, seed: int) -> bool:
    """Check one damaged dataset; return True if it was opened and read."""
    rng = np.random.default_rng(seed)
    files = form.write(drawn(rng, form))
    made = damaged(rng, files, form.write(drawn(rng, form)))
    write_data(folder, made)
    reader = READERS.get(name, read_pair)
    try:
        found = [
            record["tokens"].tolist()
            for record in sk.open(form.asked.replace("DIR", str(folder)), **form.options)
        ]
    except sk.SeekableError as error:
        check_told(error, folder)
        assert made != files
        return False
    assert found == reader(made)
    return True


@pytest.mark.parametrize("name", FORMS)
def test_damage_is_told_or_harmless(tmp_path: Path, name: str) -> None:
    for seed in range(6):
        check_damaged(tmp_path / str(seed), name, FORMS[name], seed=seed)


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:.*so that they are one document")
@pytest.mark.parametrize("name", FORMS)
def test_much_damage_is_told_or_harmless(tmp_path: Path, name: str) -> None:
    seeds = range(100, 100 + some(300))
    read = sum(check_damaged(tmp_path / str(seed), name, FORMS[name], seed=seed) for seed in seeds)
    assert 0 < read < len(seeds)


PAIR = megatron([np.array([5, 6, 7]), np.array([], np.int64), np.array([9])])


def with_word(data: bytes, at: int, value: int, width: int = 8) -> bytes:
    return data[:at] + value.to_bytes(width, "little", signed=value < 0) + data[at + width :]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"a.bin": PAIR["a.bin"][:-1]}, r"a\.bin': byte 7: expected 8 bytes, as .*a\.idx' says .* found 7"),
        (
            {"a.bin": PAIR["a.bin"] + b"\0\0"},
            r"a\.bin': byte 8: expected 8 bytes, .* found 10 bytes; .* another \.bin",
        ),
        (
            {"a.idx": PAIR["a.idx"][:-1]},
            r"a\.idx': byte 101: expected 102 bytes for 3 sequences .* found 101",
        ),
        ({"a.idx": PAIR["a.idx"][:20]}, r"a\.idx': byte 20: expected a header of 34 bytes, found the end"),
        ({"a.idx": b""}, r"a\.idx': byte 0: expected .*MMIDIDX.*found b''"),
        (
            {"a.idx": with_word(PAIR["a.idx"], 9, 2)},
            r"a\.idx': byte 9: the index is of version 2, .*Fast-LLM",
        ),
        ({"a.idx": with_word(PAIR["a.idx"], 17, 7, 1)}, r"a\.idx': byte 17: the code 7 is no type of tokens"),
        (
            {"a.idx": with_word(PAIR["a.idx"], 18, 1 << 40)},
            r"a\.idx': byte 102: expected \d+ bytes for 1099511627776",
        ),
        (
            {"a.idx": with_word(PAIR["a.idx"], 34, -1, 4)},
            r"a\.idx': byte 34: expected a length of 0 or more, found -1",
        ),
        (
            {"a.idx": with_word(PAIR["a.idx"], 34, 2, 4)},
            r"a\.idx': byte 54: expected sequence 1 at byte 4 .* found 6",
        ),
        (
            {"a.idx": with_word(PAIR["a.idx"], 46, 2)},
            r"a\.idx': byte 46: expected sequence 0 at byte 0 .* found 2",
        ),
        (
            {"a.idx": with_word(PAIR["a.idx"], 94, 2)},
            r"a\.idx': byte 94: expected the number of sequences, 3, found 2",
        ),
        (
            {"a.idx": with_word(PAIR["a.idx"], 70, 1)},
            r"a\.idx': byte 70: expected a document from sequence 0 on, found 1",
        ),
        (
            {"a.idx": with_word(PAIR["a.idx"], 86, 0)},
            r"a\.idx': byte 86: expected a document from sequence 1 on or",
        ),
    ],
)
def test_the_error_of_a_pair_says_where_it_is_damaged(tmp_path: Path, files: Files, told: str) -> None:
    write_data(tmp_path, PAIR | files)
    with pytest.raises(sk.errors.UnsupportedFormat, match=told) as caught:
        sk.open(f"megatron:{tmp_path}/a")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (caught.type, str(caught.value))


DOCUMENTS = [np.array([BOS, 5, 6]), np.array([BOS, 8])]


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        (
            "a.bin",
            llm_c(DOCUMENTS)["a.bin"][:-2],
            "byte 1032: expected 1034 bytes, as the header says of its 5 tokens",
        ),
        ("a.bin", llm_c(DOCUMENTS)["a.bin"][:1000], "byte 1000: expected a header of 1024 bytes, as llm"),
        (
            "a.bin",
            with_word(llm_c(DOCUMENTS)["a.bin"], 8, -5, 4),
            "byte 8: expected 0 tokens or more, found -5",
        ),
        (
            "a.bin",
            with_word(llm_c(DOCUMENTS)["a.bin"], 4, 9, 4),
            "byte 4: the header of llm.c is of version 9",
        ),
        ("a.bin", llm_c(DOCUMENTS, magic=20240522)["a.bin"], "byte 0: 20240522 begins a file of questions"),
        ("a.npy", numpy_file(np.zeros(4, "<u2"))[:-1], "byte 135: expected 136 bytes, .* found 135 bytes"),
        ("a.npy", numpy_file(np.zeros(4, "<f4")), "byte 6: it is an array with elements of float32"),
        ("a.npy", numpy_file(np.zeros(4, ">u2")), "byte 6: it is an array with elements of >u2"),
        ("a.npy", numpy_file(np.zeros((1, 1, 4), "<u2")), r"byte 6: .* the shape \(1, 1, 4\)"),
        ("a.npy", numpy_file(np.zeros((2, 4), "<u2", order="F")), "byte 6: .* stored by columns"),
        (
            "a.npy",
            numpy_file(np.zeros(4, "<u2")).replace(b"(4,)", b"(-4,"),
            "byte 6: expected a header of numpy",
        ),
        ("a.npy", numpy_file(np.zeros((2, 2), "<u2")).replace(b"(2, 2)", b"(-2,-2"), "byte 6: "),
        (
            "a.npy",
            numpy_file(np.zeros((2, 0), "<u2")).replace(b"(2, 0), }  ", b"(%d, 0)}" % (1 << 62)),
            "byte ",
        ),
    ],
)
def test_the_error_of_a_file_says_where_it_is_damaged(
    tmp_path: Path, name: str, data: bytes, told: str
) -> None:
    write_data(tmp_path, {name: data})
    with pytest.raises(sk.errors.UnsupportedFormat, match=rf"{name}': {told}"):
        sk.open(tmp_path / name)


@pytest.mark.parametrize(("size", "byte"), [(7, 4), (6, 4), (5, 4), (3, 0)])
def test_a_size_that_is_no_multiple_of_an_item_is_told(tmp_path: Path, size: int, byte: int) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(size))
    for eos in (None, 0):
        told = rf"a\.bin': byte {byte}: expected a token of 4 bytes .*, found the end .* after {size - byte}"
        with pytest.raises(sk.CorruptRecord, match=told) as caught:
            sk.open(f"tokens:{tmp_path}", format=sk.formats.Tokens(dtype="uint32", eos=eos))
        assert caught.value.offset == byte


@pytest.mark.parametrize("at", [18, 26, 24, 32])
def test_a_header_that_lies_allocates_nothing(tmp_path: Path, at: int) -> None:
    for name, files in (("megatron", PAIR), ("tntidx", FORMS["neox"].write([np.array([5, 6])]))):
        folder = tmp_path / name
        for value in (1 << 33, 1 << 60, (1 << 64) - 1):
            write_data(folder, files | {"a.idx": with_word(files["a.idx"], at, value)})
            tracemalloc.start()
            try:
                with pytest.raises(sk.SeekableError, match=r"a\.idx': byte"):
                    sk.open(f"megatron:{folder}/a")
                assert tracemalloc.get_traced_memory()[1] < 32 << 20
            finally:
                tracemalloc.stop()


class Bomb:
    """Counts how often it was loaded."""

    loaded = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return explode, ()


def explode() -> int:
    Bomb.loaded += 1
    return Bomb.loaded


def test_loading_executes_nothing(tmp_path: Path) -> None:
    objects: NDArray[np.object_] = np.array([Bomb(), Bomb()], dtype=object)
    np.save(tmp_path / "objects.npy", objects, allow_pickle=True)
    pickled = (tmp_path / "objects.npy").read_bytes()
    (tmp_path / "meta.pkl").write_bytes(pickled[pickled.index(b"\x80") :])
    (tmp_path / "train.bin").write_bytes(bytes(4))
    with pytest.raises(
        sk.errors.UnsupportedFormat, match=r"objects\.npy': byte 6: .* objects, which are pickled"
    ):
        sk.open(tmp_path / "objects.npy")
    for asked in (f"tokens:{tmp_path}/meta.pkl", f"tokens:{tmp_path}/*.pkl"):
        with pytest.raises(sk.errors.UnsupportedFormat, match=r"meta\.pkl' may run any code"):
            sk.open(asked, format=sk.formats.Tokens(dtype="uint16"))
    (tmp_path / "objects.npy").unlink()
    assert len(sk.open(f"tokens:{tmp_path}", format=sk.formats.Tokens(dtype="uint16"))) == 1
    assert Bomb.loaded == 0
