"""The columns of the index that packing needs, against those that are made in memory."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.killing import KILLED, Killer, one_of_each_kind
from tests.nodes.token_data import write_pair

import seekable as sk
from seekable.packing.document_lengths import document_lengths, has_documents, packing_columns
from seekable.packing.order.length_order import length_order

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.packing.order.length_order import LengthOrder

COLUMNS = ("offsets", "by_length", "place", "coarse")


def lengths_of(count: int, seed: int = 0) -> list[int]:
    drawn = np.random.default_rng(seed).integers(0, 12, count) ** 2 // 9
    return [int(length) for length in drawn]


def opened(folder: Path, counts: list[int]) -> tuple[sk.Dataset, list[int]]:
    """Write pairs of so many documents each; return their dataset and the lengths."""
    lengths: list[int] = []
    for number, count in enumerate(counts):
        own = lengths_of(count, number)
        write_pair(folder / f"{number}.bin", [np.arange(length) for length in own])
        lengths += own
    return sk.open(str(folder / "*.bin"), format="tokens"), lengths


def assert_equal(found: LengthOrder, lengths: list[int]) -> None:
    expected = length_order(np.array(lengths, np.int64))
    for column in COLUMNS:
        array, wanted = getattr(found, column), getattr(expected, column)
        assert array.tolist() == wanted.tolist(), column
        assert array.dtype == wanted.dtype, column
    for field in ("lengths", "counts", "starts"):
        assert getattr(found.classes, field).tolist() == getattr(expected.classes, field).tolist(), field


def columns_in(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder / ".seekable") if name.startswith("packing-"))


@pytest.mark.parametrize("counts", [[1], [256], [255], [513, 0, 700], [1024, 1]])
def test_columns_of_the_index_are_those_of_memory(tmp_path: Path, counts: list[int]) -> None:
    data, lengths = opened(tmp_path, counts)
    assert_equal(packing_columns(data._node, jobs=1, most_in_memory=0, chunk=256), lengths)
    assert len(columns_in(tmp_path)) == 6  # the header and five columns
    assert_equal(packing_columns(data._node, most_in_memory=0, chunk=256), lengths)


def test_nothing_is_written_for_few_documents(tmp_path: Path) -> None:
    data, lengths = opened(tmp_path, [300])
    assert_equal(packing_columns(data._node), lengths)
    assert columns_in(tmp_path) == []


def in_orders(data: sk.Dataset) -> dict[str, sk.Dataset]:
    count = len(data)
    return {
        "slice": data[count // 3 : 3 : -2],
        "shuffled": data.shuffle(3, fixed=True),
        "concat": sk.concat([data[5:9], data]),
        "filtered": data.filter(longer_than_two, jobs=1),
        "split": data.split({"a": 0.6, "b": 0.4}, seed=1)["b"],
        "selected": data.select([3, 1, 3]),
    }


def longer_than_two(record: dict[str, Any]) -> bool:
    return len(record["tokens"]) > 2


def test_columns_follow_the_order_of_rows(tmp_path: Path) -> None:
    data, _ = opened(tmp_path, [300, 41])
    names = set()
    for name, ordered in in_orders(data).items():
        lengths = [len(record["tokens"]) for record in ordered]
        assert (
            sk.formats.token_lengths(ordered).tolist() == document_lengths(ordered._node).tolist() == lengths
        ), name
        assert sk.formats.token_lengths(ordered).dtype == np.int64
        assert not sk.formats.token_lengths(ordered).flags.writeable
        assert_equal(packing_columns(ordered._node, jobs=1, most_in_memory=0, chunk=256), lengths)
        names |= {file for file in columns_in(tmp_path) if file.endswith(".json")}
    assert len(names) == 6


def test_columns_lie_apart_for_each_order_and_are_removed_with_their_files(tmp_path: Path) -> None:
    data, lengths = opened(tmp_path, [300])
    packing_columns(data._node, jobs=1, most_in_memory=0)
    kept = columns_in(tmp_path)
    packing_columns(data[:9]._node, jobs=1, most_in_memory=0)
    assert set(kept) < set(columns_in(tmp_path))
    write_pair(tmp_path / "0.bin", [np.arange(length) for length in lengths[:7]])
    changed = sk.open(str(tmp_path / "*.bin"), format="tokens")
    packing_columns(changed._node, jobs=1, most_in_memory=0)
    assert len(columns_in(tmp_path)) == 6
    assert not set(kept) & set(columns_in(tmp_path))


@pytest.mark.parametrize("damage", ["cut", "gone", "torn header"])
def test_damaged_columns_are_built_again(tmp_path: Path, damage: str) -> None:
    data, lengths = opened(tmp_path, [300])
    packing_columns(data._node, jobs=1, most_in_memory=0)
    ending = ".json" if damage == "torn header" else "place.u32"
    (path,) = (tmp_path / ".seekable").glob(f"packing-*{ending}")
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-4])
    (tmp_path / ".seekable" / f"{path.name}.0123456789abcdef.tmp").write_bytes(b"torn")
    assert_equal(packing_columns(data._node, jobs=1, most_in_memory=0), lengths)
    assert not list((tmp_path / ".seekable").glob("packing-*.tmp"))


def test_progress_ends_with_all_documents(tmp_path: Path) -> None:
    data, _ = opened(tmp_path, [1000])
    seen: list[tuple[str, int, int | None]] = []
    packing_columns(
        data._node,
        jobs=1,
        most_in_memory=0,
        chunk=256,
        progress=lambda done: seen.append((done.task, done.records, done.rows)),
    )
    assert seen[-1] == ("sorting documents by length", 1000, 1000)


def test_rows_that_change_or_are_no_documents_are_refused(tmp_path: Path) -> None:
    data, _ = opened(tmp_path, [5])
    with pytest.raises(sk.errors.InvalidArgument, match="put it before shuffle"):
        packing_columns(data.shuffle(1)._node)
    assert has_documents(data._node)
    assert not has_documents(data.map(longer_than_two)._node)
    with pytest.raises(sk.errors.InvalidArgument, match="documents of token files"):
        packing_columns(sk.from_sequence([1, 2])._node, most_in_memory=0)


def test_lengths_are_those_of_documents_in_a_fixed_order(tmp_path: Path) -> None:
    data, lengths = opened(tmp_path, [5, 0, 2])
    held = sk.formats.token_lengths(data)
    assert held.tolist() == lengths
    assert sk.formats.token_lengths(data) is held
    assert sk.formats.token_lengths(data[:0]).tolist() == []
    with pytest.raises(sk.errors.InvalidArgument, match=r"before map\(\) .* key= names"):
        _ = sk.formats.token_lengths(data.map(longer_than_two))
    with pytest.raises(sk.errors.InvalidArgument, match="put it before shuffle"):
        _ = sk.formats.token_lengths(data.shuffle(3))
    with pytest.raises(sk.errors.InvalidArgument, match="documents of token files"):
        _ = sk.formats.token_lengths(sk.from_sequence([[1, 2]]))


def test_columns_are_built_in_other_processes(tmp_path: Path) -> None:
    data, lengths = opened(tmp_path, [1500])
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert_equal(packing_columns(data._node, executor=pool, most_in_memory=0, chunk=256), lengths)


def opened_of_old_files(folder: Path) -> list[int]:
    """Write and index a pair that is so old that opening does not read it again; return the lengths."""
    _, lengths = opened(folder, [600])
    for path in folder.glob("0.*"):
        os.utime(path, ns=(10**18, 10**18))
    build(folder)
    return lengths


def build(folder: Path) -> None:
    """Build the columns of a folder of pairs that has an index."""
    data = sk.open(str(folder / "*.bin"), format="tokens")
    packing_columns(data._node, jobs=1, most_in_memory=0, chunk=256)


def without_columns(folder: Path) -> None:
    for file in (folder / ".seekable").glob("packing-*"):
        file.unlink()


def check_kill(killer: Killer, folder: Path, point: tuple[str | None, int], lengths: list[int]) -> int:
    """Kill a build at an operation; check that the next one leaves the right columns and nothing else."""
    without_columns(folder)
    kind, number = point
    code = killer.kill_at(number, folder, build, folder, kind=kind)
    data = sk.open(str(folder / "*.bin"), format="tokens")
    assert_equal(packing_columns(data._node, jobs=1, most_in_memory=0, chunk=256), lengths)
    assert len(columns_in(folder)) == 6
    return code


def test_a_build_that_is_killed_leaves_no_column_that_is_taken(tmp_path: Path) -> None:
    lengths = opened_of_old_files(tmp_path)
    with Killer() as killer:
        without_columns(tmp_path)
        kinds = killer.operations(tmp_path, build, tmp_path)
        assert {"open", "os.fsync", "os.rename"} <= {*kinds}
        points = [point for point in one_of_each_kind(kinds) if point[0] != "os.remove"]
        codes = [check_kill(killer, tmp_path, point, lengths) for point in points]
    assert {*codes} == {KILLED}


@pytest.mark.exhaustive
def test_a_build_killed_at_any_file_operation_leaves_no_column_that_is_taken(tmp_path: Path) -> None:
    lengths = opened_of_old_files(tmp_path)
    with Killer() as killer:
        count = 0
        while check_kill(killer, tmp_path, (None, count + 1), lengths) == KILLED:
            count += 1
    assert count > 30


def test_columns_are_read_after_a_fork_and_by_a_pickle(tmp_path: Path) -> None:
    data, lengths = opened(tmp_path, [300])
    columns = packing_columns(data._node, jobs=1, most_in_memory=0)
    again = pickle.loads(pickle.dumps(data))
    assert sk.formats.token_lengths(again).tolist() == lengths
    child = os.fork()
    if not child:
        right = columns.place.tolist() == packing_columns(again._node, most_in_memory=0).place.tolist()
        os._exit(0 if right and data[7]["tokens"].size == lengths[7] else 1)
    assert os.waitpid(child, 0)[1] == 0
