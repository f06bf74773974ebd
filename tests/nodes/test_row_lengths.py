"""The lengths of lists of tokens in the rows of any dataset, and the lists themselves as flat arrays."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seekable as sk
from seekable.packing.document_lengths import row_lengths
from seekable.packing.nodes.lists import lists_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from seekable.nodes.graph import Plan
    from seekable.parallel.progress import Progress

DOCUMENTS = [[5, 6, 7], [], [1, 2, 3, 4, 5], [9], [], [8, 8]]
LENGTHS = [3, 0, 5, 1, 0, 2]


def parquet(path: Path, documents: Sequence[Sequence[int] | None] = DOCUMENTS, kind: Any = None) -> Path:
    ids = pa.array(documents, kind or pa.list_(pa.int32()))
    pq.write_table(pa.table({"ids": ids, "n": pa.array(range(len(documents)))}), path, row_group_size=4)
    return path


def arrow(path: Path, kind: Any) -> Path:
    table = pa.table({"ids": pa.array(DOCUMENTS, kind), "n": list(range(6))})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=4)
    return path


def jsonl(path: Path, values: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps({"ids": value}) + "\n" for value in values))
    return path


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.large_list(pa.uint16()), pa.list_(pa.int64())])
def test_lists_of_tables(tmp_path: Path, kind: Any) -> None:
    path = parquet(tmp_path / "a.parquet", kind=kind)
    for ds in (
        sk.open(path),
        sk.open(path, decode="numpy"),
        sk.open(path, decode="arrow"),
        sk.open(arrow(tmp_path / "a.arrow", kind)),
    ):
        found = row_lengths(ds._node, "ids")
        assert found.lengths.dtype == np.int64
        assert found.lengths.tolist() == LENGTHS
        assert found.dtypes == (("ids", str(kind.value_type)),)


def test_lists_of_one_length(tmp_path: Path) -> None:
    table = pa.table({"ids": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.uint8(), 2))})
    pq.write_table(table, tmp_path / "a.parquet")
    ds = sk.open(tmp_path / "a.parquet")
    assert row_lengths(ds._node, "ids").lengths.tolist() == [2, 2, 2]
    lists = lists_of(ds[1:]._node.plan(np.array([1, 0, 1])), ["ids"])[0]
    values = [
        lists.arrays[at][start : start + 2].tolist()
        for at, start in zip(lists.array_of, lists.starts, strict=True)
    ]
    assert values == [[5, 6], [3, 4], [5, 6]]


def test_only_the_named_column_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ds = sk.open(parquet(tmp_path / "a.parquet"))
    seen: list[frozenset[str] | None] = []

    def spied(plan: Plan, names: Sequence[str | None], aligned: Sequence[str]) -> Any:
        seen.append(frozenset(plan.table().schema.names))  # type: ignore[attr-defined]  # a plan of tables
        return lists_of(plan, names, aligned)

    monkeypatch.setattr("seekable.packing.document_lengths.lists_of", spied)
    row_lengths(ds._node, "ids")
    assert set(seen) == {frozenset(["ids"])}


def test_records_of_lines_and_of_sequences(tmp_path: Path) -> None:
    ds = sk.open(jsonl(tmp_path / "a.jsonl", DOCUMENTS))
    assert row_lengths(ds._node, "ids").lengths.tolist() == LENGTHS
    assert row_lengths(ds[2:5]._node, "ids").lengths.tolist() == LENGTHS[2:5]
    both = sk.concat([ds, sk.open(parquet(tmp_path / "a.parquet"))])
    assert row_lengths(both._node, "ids").lengths.tolist() == LENGTHS * 2
    bare = sk.from_sequence(DOCUMENTS)
    assert row_lengths(bare._node, None).lengths.tolist() == LENGTHS
    arrays = sk.from_sequence([np.array([1], np.uint16), np.array([1, 2], np.int32)])
    assert row_lengths(arrays._node, None).dtypes == ((None, "int32"),)
    assert row_lengths(sk.from_sequence([[], []])._node, None).dtypes == ((None, "int64"),)
    assert row_lengths(sk.from_sequence([])._node, None).lengths.tolist() == []


def test_in_any_number_of_processes_with_progress(tmp_path: Path) -> None:
    documents = [list(range(number % 7)) for number in range(1500)]
    ds = sk.open(parquet(tmp_path / "a.parquet", documents))
    seen: list[Progress] = []
    alone = row_lengths(ds._node, "ids", jobs=1, progress=seen.append)
    assert alone.lengths.tolist() == [number % 7 for number in range(1500)]
    assert (seen[-1].task, seen[-1].records, seen[-1].rows) == ("reading lengths", 1500, 1500)
    assert row_lengths(ds._node, "ids", jobs=2).digest == alone.digest


def test_a_hole_has_no_tokens(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", [[1, 2], [3]])
    path.write_text(path.read_text() + "{torn\n" + '{"ids": [4]}\n')
    ds = sk.open(path, errors=lambda _: sk.HOLE)
    assert row_lengths(ds._node, "ids").lengths.tolist() == [2, 1, 0, 1]


@pytest.mark.parametrize(
    ("values", "row", "found"),
    [
        ([[1], [1.5]], 1, "float64"),
        ([[1], [], "text"], 2, "'text'"),
        ([[1], [[2]]], 1, "shape (1, 1)"),
        ([[1], [[2], [3, 4]]], 1, "[[2], [3, 4]]"),
        ([[1], None], 1, "None"),
        ([[1], [2, None]], 1, "object"),
        ([[1], [2**70]], 1, "object"),
        ([[1], 7], 1, "7"),
    ],
)
def test_a_record_without_a_flat_list_of_integers_is_named(
    tmp_path: Path, values: Sequence[Any], row: int, found: str
) -> None:
    path = jsonl(tmp_path / "a.jsonl", values)
    with pytest.raises(sk.errors.WrongType) as caught:
        row_lengths(sk.open(path)._node, "ids")
    assert f"{path} row {row}: pack() needs a flat list of integers in 'ids' (got " in str(caught.value)
    assert found in str(caught.value)


def test_nulls_in_tables_are_named(tmp_path: Path) -> None:
    for number, (documents, row) in enumerate([([[1], [2], None], 2), ([[1], [], [2, None, 3]], 2)]):
        path = parquet(tmp_path / f"{number}.parquet", documents)  # type: ignore[arg-type]
        with pytest.raises(sk.errors.WrongType, match=rf"{path} row {row}: .*null"):
            row_lengths(sk.open(path)._node, "ids")
    texts = parquet(tmp_path / "texts.parquet", [["a"]], pa.list_(pa.string()))  # type: ignore[list-item]
    with pytest.raises(sk.errors.WrongType, match=r"row 0: .*a column of type list<\w+: string>"):
        row_lengths(sk.open(texts)._node, "ids")
    with pytest.raises(sk.errors.WrongType, match="a column of type int64"):
        row_lengths(sk.open(texts)._node, "n")


def test_a_name_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(sk.errors.MissingColumn, match="did you mean 'ids'"):
        row_lengths(sk.open(parquet(tmp_path / "a.parquet"))._node, "idss")
    path = jsonl(tmp_path / "a.jsonl", [[1], [2]])
    path.write_text(path.read_text() + '{"other": 1}\n')
    with pytest.raises(sk.errors.MissingColumn, match=r"a\.jsonl row 2: pack\(\) needs the list 'ids': "):
        row_lengths(sk.open(path)._node, "ids")
    with pytest.raises(sk.errors.WrongType, match=r"row 0: .*a list.*key=None"):
        row_lengths(sk.from_sequence(DOCUMENTS)._node, "tokens")


def test_aligned_lists_must_be_as_long(tmp_path: Path) -> None:
    table = pa.table({"ids": [[1, 2], [3]], "mask": [[1, 0], [1]], "bad": [[1, 0], [1, 1]]})
    pq.write_table(table, tmp_path / "a.parquet")
    ds = sk.open(tmp_path / "a.parquet")
    assert row_lengths(ds._node, "ids", align=("mask",)).dtypes == (("ids", "int64"), ("mask", "int64"))
    with pytest.raises(
        sk.errors.WrongType, match=r"row 1: pack\(\) needs as many .* in 'bad' as .* 1 \(got 2\)"
    ):
        row_lengths(ds._node, "ids", align=("mask", "bad"))


def test_types_without_a_common_one() -> None:
    ds = sk.from_sequence([np.array([1], np.uint64), np.array([1], np.int64)])
    with pytest.raises(sk.errors.WrongType, match=r"no integer type holds arrays of int64 and uint64"):
        row_lengths(ds._node, None)


def test_datasets_that_have_no_lengths() -> None:
    ds = sk.from_sequence(DOCUMENTS)
    with pytest.raises(sk.errors.EndlessDataset):
        row_lengths(sk.mix([ds, ds], seed=1, stop="never")._node, None)
    with pytest.raises(sk.errors.InvalidArgument, match=r"pack\(\) needs rows .* put it before shuffle"):
        row_lengths(ds.shuffle(seed=1)._node, None)
    assert row_lengths(ds.shuffle(seed=1, fixed=True)._node, None).lengths.sum() == sum(LENGTHS)


def test_nulls_beside_the_wanted_rows_are_no_error(tmp_path: Path) -> None:
    documents = [[1, 2], None, [3, None], [4]]
    ds = sk.open(parquet(tmp_path / "a.parquet", documents))  # type: ignore[arg-type]
    found = row_lengths(ds.select([3, 0])._node, "ids")
    assert (found.lengths.tolist(), found.dtypes) == ([1, 2], (("ids", "int32"),))
    lists = lists_of(ds._node.plan(np.array([3, 0])), ["ids"])[0]
    slices = zip(lists.array_of, lists.starts, lists.lengths, strict=True)
    assert [lists.arrays[at][start : start + count].tolist() for at, start, count in slices] == [[4], [1, 2]]


def test_lists_of_several_files_and_sources_lie_in_their_record_batches(tmp_path: Path) -> None:
    one = sk.open([parquet(tmp_path / f"{number}.parquet", [[number], [number, 9]]) for number in range(3)])
    other = sk.open(arrow(tmp_path / "a.arrow", pa.list_(pa.int64())))
    both = sk.concat([one, other])
    rows = np.array([7, 0, 5, 3, 8, 0, 11, 2])
    lists = lists_of(both._node.plan(rows), ["ids"])[0]
    expected = [both[int(row)]["ids"] for row in rows]
    assert lists.lengths.tolist() == [len(each) for each in expected]
    found: list[list[int]] = [[] for _ in rows]
    for array, some in lists.by_array(np.arange(rows.size)):
        for at in some.tolist():
            found[at] = array[lists.starts[at] : lists.starts[at] + lists.lengths[at]].tolist()
    assert found == expected
    assert lists.dtypes == {"int32", "int64"}
