"""The source of documents of token files, and the copies of slices of them, against arrays in memory."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.nodes.token_data import MASK, dataset_of, open_source, simple_source, write_pair, write_tokens
from tests.thrift import some

import seekable as sk
from seekable.errors import CorruptRecord, IndexStale, InvalidArgument, UnsupportedFormat
from seekable.formats.tokens.stored_arrays import copy_elements
from seekable.formats.tokens.words import AlignedFile, TokenSchema
from seekable.loader.checkpoint_files import read_saved, rebuild_saved
from seekable.nodes.concat import Concat
from seekable.writing.pipeline_code import origin_paths, paths_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seekable.formats.tokens.token_reading import TokensPlan
    from seekable.formats.tokens.token_source import TokenSource
    from seekable.nodes.node import Node

FORMS = {
    "plain": TokenSchema("<u2"),
    "header in each": TokenSchema("<u4", skip=3),
    "explicit": TokenSchema("<i4", explicit=True),
    "one more is stored": TokenSchema("<i4", minus=1),
    "big-endian": TokenSchema(">u2"),
    "arrays inside": TokenSchema("<u2", inside=(("mask", "|u1"), ("weight", "<f4"))),
    "fixed": TokenSchema("<u2", sample=3, inside=(("mask", "|b1"),)),
    "aligned": TokenSchema("<u2", aligned=(MASK, AlignedFile("weight", "<f4", "w.f4"))),
}


def plan_of(node: Node, rows: NDArray[np.int64]) -> TokensPlan:
    """Return the plan of documents with its own type."""
    return cast("TokensPlan", node.plan(rows))


def made_documents(schema: TokenSchema, lengths: list[int], seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    kinds = {"tokens": schema.dtype, **dict(schema.inside), **{a.name: a.dtype for a in schema.aligned}}
    return [
        {name: rng.integers(0, 2 if "b" in kind else 99, count).astype(kind) for name, kind in kinds.items()}
        for count in lengths
    ]


def assert_same(record: dict[str, Any], document: dict[str, Any]) -> None:
    assert list(record) == list(document)
    for name, array in record.items():
        assert array.tolist() == document[name].tolist(), name
        assert array.dtype == document[name].dtype.newbyteorder("="), name
        assert array.dtype.isnative
        assert array.flags.aligned
        assert not array.flags.writeable


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("header", [0, 5, 8])
def test_records_are_the_arrays_that_were_written(tmp_path: Path, form: str, header: int) -> None:
    schema = FORMS[form]
    lengths = [3] * 6 if schema.sample else [3, 0, 1, 5, 0, 2]
    documents = made_documents(schema, lengths)
    schema = TokenSchema(**{**_fields(schema), "first": header})
    write_tokens(tmp_path / "a.bin", documents, schema, header=header)
    source = open_source(tmp_path, ["a.bin"])
    assert source.size == 6
    every = source.fetch(np.array([5, 0, 3, 9, 1], np.int64))
    for record, row in zip(every, [5, 0, 3, 3, 1], strict=True):
        assert_same(record, documents[row])
    for row, document in enumerate(documents):
        assert_same(source.record(row), document)
    assert source.words.lengths().tolist() == lengths
    assert list(source.declared() or ()) == list(documents[0])


def _fields(schema: TokenSchema) -> dict[str, Any]:
    return {name: getattr(schema, name) for name in schema.__slots__}


def test_tokens_are_no_copies_where_the_file_is_aligned(tmp_path: Path) -> None:
    source = simple_source(tmp_path, [3, 4])
    first, second = source.fetch(np.array([0, 1]))
    assert (
        second["tokens"].__array_interface__["data"][0] - first["tokens"].__array_interface__["data"][0] == 6
    )
    assert first["tokens"].base is not None


def test_locations_are_bytes_of_the_file(tmp_path: Path) -> None:
    documents = made_documents(FORMS["arrays inside"], [2, 3])
    write_tokens(tmp_path / "a.bin", documents, FORMS["arrays inside"], header=6)
    data = dataset_of(open_source(tmp_path, ["a.bin"]))
    where = data.locate(1)
    assert (where.path, where.row, where.offset, where.length) == (str(tmp_path / "a.bin"), 1, 20, 21)
    assert data.find(where.path, 1) == [1]
    assert data._node.plan(np.array([1])).bytes == 21


@pytest.mark.parametrize("columns", [["mask"], ["weight", "tokens"], []])
def test_columns_are_read_alone(tmp_path: Path, columns: list[str]) -> None:
    documents = made_documents(FORMS["aligned"], [2, 3])
    write_tokens(tmp_path / "a.bin", documents, FORMS["aligned"])
    chosen = open_source(tmp_path, ["a.bin"], columns=columns)
    assert_same(chosen.record(1), {name: documents[1][name] for name in columns})
    data = dataset_of(open_source(tmp_path, ["a.bin"]))
    assert list(data.columns) == ["tokens", "mask", "weight"]
    if columns:
        assert_same(data.select_columns(columns)[1], {name: documents[1][name] for name in columns})
    if columns == ["mask"]:
        Path(tmp_path / "w.f4").unlink()
        assert_same(data.select_columns(columns)[0], {"mask": documents[0]["mask"]})


def test_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    write_tokens(tmp_path / "a.bin", made_documents(FORMS["plain"], [2]), FORMS["plain"])
    with pytest.raises(InvalidArgument, match="no column 'mask'"):
        open_source(tmp_path, ["a.bin"], columns=["mask"])
    with pytest.raises(InvalidArgument, match="drop it"):
        open_source(tmp_path, ["a.bin"], decode="json")


def test_files_of_different_arrays_are_refused(tmp_path: Path) -> None:
    write_tokens(tmp_path / "a.bin", made_documents(FORMS["plain"], [2]), FORMS["plain"])
    write_tokens(tmp_path / "b.bin", made_documents(FORMS["aligned"], [2]), FORMS["aligned"])
    with pytest.raises(
        UnsupportedFormat, match=r"a\.bin' has the arrays tokens, and .*b\.bin' has tokens, mask"
    ):
        open_source(tmp_path, ["a.bin", "b.bin"])


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    documents = made_documents(FORMS["aligned"], [2, 3])
    write_tokens(tmp_path / "a.bin", documents, FORMS["aligned"])
    source = open_source(tmp_path, ["a.bin"])
    source.record(0)
    mask = (tmp_path / "mask.u1").read_bytes()
    (tmp_path / "mask.u1").write_bytes(mask[:-1])
    with pytest.raises(IndexStale, match=r"mask\.u1"):
        source.record(0)
    with pytest.raises(IndexStale, match=r"mask\.u1"):
        source.fetch(np.array([1]))
    (tmp_path / "a.bin").write_bytes(b"")
    with pytest.raises(IndexStale, match=r"a\.bin"):
        source.fetch(np.array([1]))


def test_a_short_aligned_file_is_a_corrupt_record(tmp_path: Path) -> None:
    documents = made_documents(FORMS["aligned"], [2, 3])
    write_tokens(tmp_path / "a.bin", documents, FORMS["aligned"])
    (tmp_path / "mask.u1").write_bytes(b"\x7f\x7f\x7f\x01\x01")
    source = open_source(tmp_path, ["a.bin"])
    assert source.record(0)["mask"].tolist() == [1, 1]
    with pytest.raises(CorruptRecord, match=r"mask\.u1: record 1 at byte 5 \(3 bytes\).*it needs 1 a token"):
        source.record(1)
    out = {"mask": np.zeros((1, 2), np.uint8)}
    with pytest.raises(CorruptRecord, match="record 1 at byte 5"):
        plan_of(source, np.array([1])).copy_into(out, *np.array([[0], [0], [0], [1]]))
    instead = open_source(tmp_path, ["a.bin"], errors=lambda error: error.row)
    assert instead.record(1) == 1
    assert instead.fetch(np.array([1])) == [1]


def test_side_files_that_were_touched_change_nothing(tmp_path: Path) -> None:
    write_pair(tmp_path / "a.bin", [np.arange(4), np.arange(6)])
    before = sk.open(f"megatron:{tmp_path}/a")
    os.utime(tmp_path / "a.idx", ns=(10**18, 10**18))
    again = sk.open(f"megatron:{tmp_path}/a")
    assert again.fingerprint == before.fingerprint
    assert again[1]["tokens"].tolist() == [0, 1, 2, 3, 4, 5]


def test_the_type_of_tokens_is_in_the_fingerprint(tmp_path: Path) -> None:
    write_pair(tmp_path / "a.bin", [np.arange(4), np.arange(6)])
    before = sk.open(f"megatron:{tmp_path}/a")
    index = (tmp_path / "a.idx").read_bytes()
    as_bytes = index[:17] + b"\1" + index[18:34] + np.array([8, 12], "<i4").tobytes() + index[42:]
    (tmp_path / "a.idx").write_bytes(as_bytes)
    again = sk.open(f"megatron:{tmp_path}/a")
    assert again[1]["tokens"].tolist() == [0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0]
    assert again.fingerprint != before.fingerprint


def test_fingerprints_are_those_of_a_copy_of_the_files(tmp_path: Path) -> None:
    found = set()
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        write_pair(folder / "a.bin", [np.arange(4)])
        write_pair(folder / "b.bin", [np.arange(4), np.arange(2)], "<i4")
        os.utime(folder / "a.idx", ns=(10**18, 10**18))
        data = sk.open(str(folder / "*.bin"), format="tokens")
        found.add(data.fingerprint)
    assert len(found) == 1
    forms = data._node.describe(None)
    assert (forms["forms"], forms["form_of"]) == ([{"dtype": "<u2"}, {"dtype": "<i4"}], [0, 1])


@pytest.mark.parametrize("form", ["fixed", "aligned", "one more is stored"])
def test_documents_of_one_length_are_read_as_arrays(tmp_path: Path, form: str) -> None:
    documents = made_documents(FORMS[form], [3] * 5)
    write_tokens(tmp_path / "a.bin", documents, FORMS[form])
    data = dataset_of(open_source(tmp_path, ["a.bin"]))
    rows = [4, 0, 0, 2]
    arrays = data._node.plan(np.array(rows)).arrays()
    assert arrays is not None
    assert list(arrays) == list(documents[0])
    for name, array in arrays.items():
        assert array.tolist() == [documents[row][name].tolist() for row in rows]
        assert array.dtype == documents[0][name].dtype
    (batch,) = data.batches("numpy", size=9)
    assert batch["tokens"].tolist() == [document["tokens"].tolist() for document in documents]
    (loaded,) = sk.Loader(data, batch_size=5, epochs=1)
    assert np.asarray(loaded["tokens"]).tolist() == batch["tokens"].tolist()
    assert data._node.plan(np.zeros(0, np.int64)).arrays() is None


def test_documents_of_other_lengths_are_no_arrays(tmp_path: Path) -> None:
    assert simple_source(tmp_path, [3, 3, 2]).plan(np.array([0, 1])).arrays() is None


def test_the_bytes_of_a_saved_step_are_found_again(tmp_path: Path) -> None:
    write_pair(tmp_path / "a.bin", [np.arange(4), np.arange(6), np.arange(1)])
    data = sk.open(f"megatron:{tmp_path}/a").shuffle(3)
    loader = sk.Loader(data, batch_size=2, collate=list, epochs=2)
    next(iter(loader))
    sk.save_state(tmp_path / "states", loader)
    (saved,) = (tmp_path / "states").glob("state-*.json")
    rebuilt = rebuild_saved(read_saved(str(saved)))
    assert rebuilt.unlocated == ()
    assert sk.Dataset(rebuilt.dataset).locate(2) == data.locate(2)


def test_the_files_of_documents_are_those_that_a_pipeline_reads(tmp_path: Path) -> None:
    source = simple_source(tmp_path, [3, 4])
    assert list(paths_of(source)) == origin_paths(source) == [str(tmp_path / "simple.bin")]


def test_pickles_hold_no_documents(tmp_path: Path) -> None:
    source = simple_source(tmp_path, [3] * 1000)
    source.record(0)
    pickled = pickle.dumps(source)
    assert len(pickled) < 1500
    again = pickle.loads(pickled)
    assert again.record(2)["tokens"].tolist() == [6, 7, 8]
    assert again.fingerprint == source.fingerprint


def _two_sources(folder: Path) -> tuple[list[dict[str, Any]], list[TokenSource]]:
    made, sources = [], []
    for number, form in enumerate(("plain", "one more is stored")):
        documents = made_documents(FORMS[form], [7, 0, 2, 9], seed=number)
        write_tokens(folder / f"{number}.bin", documents, FORMS[form])
        write_tokens(folder / f"{number}.more", documents, FORMS[form], header=3)
        sources.append(open_source(folder, [f"{number}.bin", f"{number}.more"]))
        made += documents * 2
    return made, sources


@pytest.mark.parametrize("dtype", ["u2", "i8"])
def test_slices_are_copied_from_several_files(tmp_path: Path, dtype: str) -> None:
    documents, sources = _two_sources(tmp_path)
    rng = np.random.default_rng(5)
    for equal in (False, True):
        rows = rng.integers(0, len(documents), 40)
        counts = np.array([len(documents[row]["tokens"]) for row in rows])
        starts = rng.integers(0, counts + 1)
        lengths = np.minimum(2, counts - starts) if equal else rng.integers(0, counts - starts + 1)
        out = {"tokens": np.full((40, 12), 77, dtype)}
        expected = out["tokens"].copy()
        at = rng.integers(0, 12 - lengths + 1)
        targets = rng.permutation(40)
        for row, start, count, target, first in zip(rows, starts, lengths, targets, at, strict=True):
            expected[target, first : first + count] = documents[row]["tokens"][start : start + count]
        plan_of(Concat(tuple(sources)), rows).copy_into(out, targets, at, starts, lengths)
        assert (out["tokens"] == expected).all()


def test_aligned_slices_are_copied_from_the_files_of_their_documents(tmp_path: Path) -> None:
    made, names = [], [f"{number}.bin" for number in range(3)]
    for number, name in enumerate(names):
        mask = AlignedFile("mask", "|u1", f"{number}.u1", 2 + number)
        schema = TokenSchema("<u2", aligned=(mask,), first=2 * number)
        documents = made_documents(schema, [2, 3], seed=number)
        write_tokens(tmp_path / name, documents, schema, header=2 * number)
        made += documents
    rows = np.array([5, 0, 3, 2])
    ones, where = np.ones(4, np.int64), np.arange(4)
    for is_short in (False, True):
        out = {"tokens": np.zeros((4, 2), "u2"), "mask": np.zeros((4, 2), "u1")}
        if is_short:
            # The last element of the last file is gone: that of the last token of row 5.
            aligned = tmp_path / "2.u1"
            aligned.write_bytes(aligned.read_bytes()[:-1])
        source = open_source(tmp_path, names)
        copied = (where, 0 * ones, ones, np.array([2, 1, 1, 1]))
        if is_short:
            with pytest.raises(CorruptRecord, match=r"2\.u1.* the file has 8") as caught:
                plan_of(source, rows).copy_into(out, *copied)
            assert caught.value.row == 1
            continue
        plan_of(source, rows).copy_into(out, *copied)
        for name, array in out.items():
            expected = [made[5][name][1:3], made[0][name][1:2], made[3][name][1:2], made[2][name][1:2]]
            assert [each[: len(few)].tolist() for each, few in zip(array, expected, strict=True)] == [
                few.tolist() for few in expected
            ]


@given(
    most=st.integers(1, 6),
    slices=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=12),
    kind=st.sampled_from(
        [("<u2", "u2", 0), ("<u4", "u4", 0), ("<u2", "i8", 0), ("<i4", "i4", 1), (">u2", "u2", 0)]
    ),
    equal=st.booleans(),
    shift=st.integers(0, 3),
)
@settings(max_examples=some(60, of=3), deadline=None)
def test_elements_are_copied_as_by_a_loop(
    *, most: int, slices: list[tuple[int, int]], kind: tuple[str, str, int], equal: bool, shift: int
) -> None:
    stored, wanted, minus = kind
    values = np.arange(1, 60).astype(stored)
    source = memoryview(b"\x7f" * shift + values.tobytes())
    counts = np.array([most if equal else count % (most + 1) for count, _ in slices], np.int64)
    starts = np.array([start % 50 for _, start in slices], np.int64)
    out = np.zeros((len(slices) + 1, 8), wanted)
    expected = out.copy()
    to = 8 * np.arange(len(slices), dtype=np.int64)[::-1] + (0 if shift % 2 else 1)
    for target, start, count in zip(to.tolist(), starts.tolist(), counts.tolist(), strict=True):
        expected.reshape(-1)[target : target + count] = values[start : start + count] - minus
    begins = shift + starts * values.itemsize
    copy_elements(out, source, to=to, starts=begins, counts=counts, dtype=values.dtype, minus=minus)
    assert (out == expected).all()
