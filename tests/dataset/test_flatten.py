"""Several records made of one: the items of the plain loop, made once where they are read together."""

from __future__ import annotations

import gc
import json
import pickle
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dataset.common import endless, flow, numbers
from tests.killing import KILLED, Killer

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seekable.parallel.progress import Progress

RANGE = "<builtins.range>"


def parts(number: int) -> list[tuple[int, int]]:
    return [(number, part) for part in range(number % 4)]


def lists(sizes: list[int]) -> sk.Dataset:
    return sk.from_sequence([[(row, item) for item in range(size)] for row, size in enumerate(sizes)])


class Counted:
    """Counts how often each record was flattened."""

    def __init__(self) -> None:
        self.calls: Counter[int] = Counter()

    def __call__(self, number: int) -> list[tuple[int, int]]:
        self.calls[number] += 1
        return parts(number)


@given(st.lists(st.integers(0, 5), max_size=60), st.data())
def test_the_items_are_those_of_the_plain_loop(sizes: list[int], data: st.DataObject) -> None:
    ds = lists(sizes).flatten(jobs=1)
    items = [item for record in lists(sizes) for item in record]
    assert len(ds) == len(items)
    assert list(ds) == items
    assert flow(ds, 2 * len(items)) == items * 2
    assert [ds[i] for i in range(len(items))] == items
    if items:
        some = data.draw(st.lists(st.integers(0, len(items) - 1), max_size=40))
        assert ds[some] == [items[i] for i in some]
        assert [ds[i] for i in some] == [items[i] for i in some]
        assert [place.row for place in ds.locate(some)] == [items[i][0] for i in some]
        plan = ds._node.plan(np.array(some, dtype=np.int64))
        for start in range(len(some) + 1):
            for stop in {start, (start + len(some) + 1) // 2, len(some)}:
                assert plan.slice(start, stop).read() == [items[i] for i in some[start:stop]]
                assert plan.slice(start, stop).origins().rows.tolist() == [
                    items[i][0] for i in some[start:stop]
                ]


def test_any_iterable_of_items_will_do() -> None:
    ds = sk.from_sequence(["to be", "or"])
    assert list(ds.flatten(str.split)) == ["to", "be", "or"]
    assert list(ds.flatten(lambda text: (word for word in text.split()))) == ["to", "be", "or"]
    assert list(ds.flatten(lambda text: dict.fromkeys(text.split()))) == ["to", "be", "or"]
    assert list(ds.flatten(lambda text: np.arange(len(text)))) == [0, 1, 2, 3, 4, 0, 1]
    assert list(ds.flatten(str)) == list("to beor")


def test_no_items_are_an_empty_dataset(tmp_path: Path) -> None:
    def nothing(_: int) -> list[int]:
        return []

    for n, save in ((10, None), (10, tmp_path / "none.u64"), (0, None), (0, tmp_path / "empty.u64")):
        ds = numbers(n).flatten(nothing, save=save)
        assert (len(ds), list(ds), ds.find(RANGE, 3)) == (0, [], [])
        assert list(numbers(n).flatten(nothing, save=save)) == []


def test_the_function_is_called_once_for_items_that_are_read_one_after_another() -> None:
    counted = Counted()
    ds = numbers(1000).flatten(counted, version=1, jobs=1)
    calls = dict.fromkeys(range(1000), 1)
    assert counted.calls == calls
    read = [number for number in calls if number % 4]
    for items in (
        lambda: list(ds),
        lambda: [ds[i] for i in range(len(ds))],
        lambda: ds[list(range(len(ds)))],
    ):
        counted.calls.clear()
        assert len(items()) == len(ds)
        assert counted.calls == dict.fromkeys(read, 1)


def test_the_function_is_called_once_for_items_that_are_read_together() -> None:
    counted = Counted()
    ds = numbers(200).flatten(counted, version=1, jobs=1)
    items = list(ds)
    counted.calls.clear()
    order = np.random.default_rng(1).permutation(len(ds))
    assert ds[order] == [items[i] for i in order]
    assert set(counted.calls.values()) == {1}


def test_no_two_items_are_one_object() -> None:
    """Who changes an item that was read must not change what is read later."""
    ds = sk.from_sequence(["a b", "c"]).flatten(lambda text: [[word] for word in text.split()])
    reads: list[Callable[[], list[str]]] = [
        lambda: ds[0],
        lambda: ds[[1, 0]][1],
        lambda: next(iter(ds)),
        lambda: ds[[0, 0]][1],
        lambda: ds[0],
    ]
    for read in reads:
        item = read()
        assert item == ["a"]
        item.append("changed")
    one, other = ds[[0, 0]]
    assert one == other
    assert one is not other
    assert list(ds) == [["a"], ["b"], ["c"]]
    # The rest of a record that was read in part is given once, also where the same record comes again.
    assert ds[0] == ["a"]
    rest = ds[[1, 2, 0]]
    assert rest == [["b"], ["c"], ["a"]]
    assert all(item is not again for item, again in zip(rest, [ds[1], ds[2], ds[0]], strict=True))


def test_threads_do_not_take_each_others_items() -> None:
    ds = numbers(3000).flatten(parts)
    wanted = list(ds)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append([ds[i] for i in range(2000)])) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted[:2000]] * 3


def test_locations_and_positions_lead_through_it() -> None:
    ds = numbers(20).flatten(parts)
    assert [place.row for place in ds.locate([0, 1, 2, 3])] == [1, 2, 2, 3]
    assert ds.find(RANGE, 3) == [3, 4, 5]
    assert ds.find(RANGE, 3, epoch=2) == [2 * len(ds) + place for place in (3, 4, 5)]
    assert ds.find(RANGE, 4) == []
    shuffled = ds.shuffle(seed=1)
    for number in range(20):
        at = shuffled.find(RANGE, number, epoch=1)
        assert at == sorted(at)
        assert sorted(flow(shuffled, 2 * len(ds))[place] for place in at) == parts(number)
    assert list(ds.flatten(lambda pair: [pair] * pair[1])) == [
        pair for number in range(20) for pair in parts(number) for _ in range(pair[1])
    ]


def test_a_key_leads_to_the_first_item(tmp_path: Path) -> None:
    lines = [{"id": f"k{row}", "words": ["a", "b"][: row % 3]} for row in range(9)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ds = sk.open(tmp_path, key="id").flatten(
        lambda record: [(record["id"], word) for word in record["words"]]
    )
    assert ds.key("k2") == ("k2", "a")
    assert ds.key(["k5", "k1"]) == [("k5", "a"), ("k1", "a")]
    with pytest.raises(sk.errors.KeyNotFound, match=r"a\.jsonl row 3, is not among the rows"):
        ds.key("k3")


def test_holes_are_items() -> None:
    ds = sk.from_sequence([[1, 2], sk.HOLE, [], [3]]).flatten()
    assert list(ds) == [1, 2, sk.HOLE, 3]
    assert ds.locate(2).row == 1


def test_another_number_of_items_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('["x"]\n["y"]\n')
    more: list[str] = []
    ds = sk.open(tmp_path).flatten(lambda record: record + more)
    assert list(ds) == ["x", "y"]
    more.append("z")
    message = (
        r"a\.jsonl row 1: flatten\(.*\) made 1 items of this record when items were counted, and makes 2 now"
    )
    for read in (lambda: ds[1], lambda: ds[[1]], lambda: ds[[1, 0, 1]], lambda: list(ds[1:])):
        with pytest.raises(sk.errors.BadValue, match=message):
            read()


def test_what_is_no_list_of_items_is_named() -> None:
    with pytest.raises(
        sk.errors.WrongType, match=r"range> row 0: flatten\(.*\) must make a list of items .*got None"
    ):
        numbers(3).flatten(lambda _: None, jobs=1)  # type: ignore[arg-type, return-value]  # a mistake
    with pytest.raises(
        sk.errors.WrongType, match=r"row 0: flatten\(\) must make a list of items .*got 0 of type int"
    ):
        numbers(3).flatten(jobs=1)
    with pytest.raises(sk.errors.WrongType, match="a function is needed"):
        numbers(3).flatten(3)  # type: ignore[arg-type]  # what a user might try
    with pytest.raises(sk.errors.InvalidArgument, match="version"):
        numbers(3).flatten(Counted())
    with pytest.raises(sk.errors.InvalidArgument, match="put it before shuffle"):
        numbers(3).shuffle(seed=1).flatten(parts)
    with pytest.raises(sk.errors.EndlessDataset, match=r"flatten\(\) needs a length"):
        endless().flatten(parts)


def broken(number: int) -> list[int]:
    if number == 432:
        message = "no such word"
        raise KeyError(message)
    return [number]


def test_an_error_tells_of_its_record() -> None:
    with pytest.raises(KeyError, match="no such word") as caught:
        numbers(900).flatten(broken, jobs=1)
    assert "in flatten(tests.dataset.test_flatten.broken)" in (note := "\n".join(caught.value.__notes__))
    assert "row=432" in note


def test_the_items_do_not_depend_on_who_counts_them() -> None:
    ds = numbers(3000)
    assert ds.flatten(parts, jobs=2).fingerprint == ds.flatten(parts, jobs=1).fingerprint


@pytest.mark.parametrize("n", [0, 300])
@pytest.mark.parametrize(("operation", "task"), [("flatten", "flattening"), ("sort", "sorting")])
def test_progress_is_told_and_an_executor_stays_open(n: int, operation: str, task: str) -> None:
    told: list[Progress] = []
    with ThreadPoolExecutor(2) as executor:
        made = getattr(numbers(n), operation)(
            lambda row: [row] if operation == "flatten" else row,
            version=1,
            progress=told.append,
            executor=executor,
        )
        assert executor.submit(int).result() == 0
    assert list(made) == list(range(n))
    assert told[-1].is_done
    assert {(progress.task, progress.rows) for progress in told} == {(task, n)}


def test_what_enters_the_fingerprint() -> None:
    ds = numbers(10)
    one = ds.flatten(parts)
    assert one.fingerprint == ds.flatten(parts).fingerprint
    others = [ds.flatten(parts, version=1), ds.flatten(lambda n: [n]), ds.map(abs)]
    assert len({one.fingerprint, *(other.fingerprint for other in others)}) == 4


def test_rows_are_saved_as_those_of_a_filter_are(tmp_path: Path) -> None:
    save = tmp_path / "items.u64"
    counted = Counted()
    first = numbers(30).flatten(counted, save=save, version=1, jobs=1)
    again = numbers(30).flatten(counted, save=save, version=1)
    assert set(counted.calls.values()) == {1}
    assert list(first) == list(again) == [item for number in range(30) for item in parts(number)]
    raw = save.read_bytes()
    assert [int.from_bytes(raw[at : at + 8], "little") for at in range(0, 48, 8)] == [1, 2, 2, 3, 3, 3]
    described = json.loads((tmp_path / "items.u64.json").read_text())
    assert (described["operation"], described["records"], described["count"]) == ("flatten", 30, len(first))
    with pytest.raises(sk.StateMismatch, match=r"the dataset was .*\n.*or remove this one to flatten again"):
        numbers(31).flatten(counted, save=save, version=1)
    with pytest.raises(sk.StateMismatch, match=r"found by flatten\(\), and here by filter\(\)"):
        numbers(30).filter(counted, save=save, version=1)
    numbers(30).filter(bool, save=tmp_path / "kept.u64")
    with pytest.raises(sk.StateMismatch, match=r"found by filter\(\), and here by flatten\(\)"):
        numbers(30).flatten(counted, save=tmp_path / "kept.u64", version=1)
    save.write_bytes(raw[:-8])
    with pytest.raises(sk.errors.CorruptState, match=r"items\.u64' has .*remove it to flatten again"):
        numbers(30).flatten(counted, save=save, version=1)


def test_the_code_of_the_function_counts_where_rows_are_saved(tmp_path: Path) -> None:
    def repeated(times: int) -> Any:
        return lambda number: [number] * times

    numbers(5).flatten(repeated(2), save=tmp_path / "items.u64")
    with pytest.raises(sk.StateMismatch, match=r"the code of .* was xxh3:\w+, is xxh3:"):
        numbers(5).flatten(repeated(3), save=tmp_path / "items.u64")


def flatten_into(save: Path) -> None:
    numbers(2000).flatten(parts, save=save, jobs=1)


@pytest.mark.exhaustive
def test_killed_at_any_file_operation_the_next_run_has_the_items(tmp_path: Path) -> None:
    items = [item for number in range(2000) for item in parts(number)]
    with Killer() as killer:
        (tmp_path / "all").mkdir()
        kinds = killer.operations(tmp_path / "all", flatten_into, tmp_path / "all" / "items.u64")
        for number in range(1, len(kinds) + 1):
            folder = tmp_path / str(number)
            folder.mkdir()
            assert killer.kill_at(number, folder, flatten_into, folder / "items.u64") == KILLED
            assert list(numbers(2000).flatten(parts, save=folder / "items.u64")) == items
            assert {file.name for file in folder.iterdir()} == {
                "items.u64",
                "items.u64.json",
                "items.u64.lock",
            }


def test_a_pickle_finds_the_items() -> None:
    ds = numbers(30).flatten(parts)
    assert list(pickle.loads(pickle.dumps(ds))) == list(ds)
    again = pickle.dumps(ds)
    del ds
    gc.collect()
    with pytest.raises(sk.IndexStale, match=r"Name a file with flatten\(\.\.\., save=\)"):
        list(pickle.loads(again))


def test_blocks_are_those_of_the_child_with_all_their_items() -> None:
    ds = numbers(2500).flatten(parts)
    edges = [sum(number % 4 for number in range(edge)) for edge in (0, 1024, 2048, 2500)]
    assert ds._node.blocks.tolist() == edges


def test_all_of_a_row_are_in_the_streams_and_mixtures_over_it() -> None:
    ds = numbers(40).flatten(parts)
    assert sorted(ds.stream(lanes=3, epochs=1)) == sorted(ds)
    both = sk.mix([ds.shuffle(seed=1), numbers(40).flatten(parts, version=2)], weights=[1, 1], seed=2)
    assert set(both) == set(ds)
    assert list(ds.filter(lambda pair: pair[1] == 2)) == [(n, 2) for n in range(40) if n % 4 == 3]


def test_only_one_kind_of_row_is_merged() -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=r"compares the rows of files.*concatenate first"):
        sk.concat([numbers(9).flatten(parts), numbers(9)], distinct=True)
