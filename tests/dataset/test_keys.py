"""Records by key: the right one or an error, through every node whose rows stay where they are."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.dataset.common import numbers
from tests.killing import KILLED, Killer, one_of_each_kind
from tests.thrift import ALL, sample

import seekable as sk
from seekable.index.digest import key_hash
from seekable.nodes import key as keys
from seekable.nodes import key_lookup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seekable.parallel.progress import Progress

ROOT = Path(__file__).parents[2]
Record = dict[str, Any]


def write(path: Path, records: list[Any], *, seconds: int = 0) -> None:
    """Write JSON lines that look old, so that nothing about them is in doubt."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    os.utime(path, (1_600_000_000 + seconds,) * 2)


def corpus(folder: Path, count: int = 60, files: int = 3) -> list[Record]:
    """Write records whose ids are strings in odd rows and numbers in even ones."""
    records: list[Record] = [
        {"text": f"the text of {i}", "id": f"r{i}" if i % 2 else i} for i in range(count)
    ]
    for file in range(files):
        write(folder / f"part-{file}.jsonl", records[file * count // files : (file + 1) * count // files])
    return records


def by_id(record: Record) -> Any:
    return record["id"]


def test_each_record_is_found_by_its_key(tmp_path: Path) -> None:
    records = corpus(tmp_path)
    for of in ("id", by_id):
        ds = sk.open(tmp_path, key=of)
        assert [ds.key(record["id"]) for record in records] == records
        assert ds.key([record["id"] for record in reversed(records)]) == records[::-1]
        assert ds.key([]) == []
        assert ds.key(np.array([2, 0])) == [records[2], records[0]]
        assert ds.key(np.int64(4)) == records[4]
        assert ds.key(("r3",)) == [records[3]]


def test_a_key_that_no_record_has_is_told_of(tmp_path: Path) -> None:
    corpus(tmp_path)
    ds = sk.open(tmp_path, key="id")
    for missing in ("r2", "1", "", -1, 10**30, "\ud800"):
        with pytest.raises(
            sk.errors.KeyNotFound, match=r"no record has the key .*; there are 60 keys"
        ) as caught:
            ds.key(missing)
        assert repr(missing) in str(caught.value)
        with pytest.raises(KeyError):
            ds.key(["r1", missing])
    with pytest.raises(sk.errors.KeyNotFound, match="One has the key 2: an int and a str are different keys"):
        ds.key("2")


@pytest.mark.parametrize("key", [None, 1.0, True, b"r1", {"id": 1}, np.float64(2)])
def test_other_types_are_no_keys(key: object, tmp_path: Path) -> None:
    corpus(tmp_path)
    for ds in (sk.open(tmp_path, key="id"), sk.open(tmp_path, key="id").map(by_id)):
        with pytest.raises(sk.errors.WrongType, match="a key is a str or an int"):
            ds.key(key)
        with pytest.raises(sk.errors.WrongType, match="a key is a str or an int"):
            ds.key(["r1", key])


KEYS = st.one_of(
    st.text(max_size=4),
    st.integers(-5, 5),
    st.integers(),
    st.sampled_from(["\ud800", "\x00", "é", "e\u0301"]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    wanted=st.lists(KEYS, max_size=30),
    asked=st.lists(KEYS, max_size=5),
    mask=st.sampled_from([0, 1, 2**64 - 1]),
)
def test_it_is_a_dict_of_the_records(
    wanted: list[str | int], asked: list[str | int], mask: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # With a mask of 0 all hashes are the same, with 1 there are two.
    folder = tmp_path_factory.mktemp("keys")
    write(folder / "a.jsonl", [{"n": n, "id": key} for n, key in enumerate(wanted)])
    rows: dict[tuple[type, str | int], list[int]] = {}
    for n, key in enumerate(wanted):
        rows.setdefault((type(key), key), []).append(n)
    with masked(mask), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        ds = sk.open(folder, key="id", index=sk.Index(jobs=1))
        several = {key: some for key, some in rows.items() if len(some) > 1}
        assert bool(several) == any(issubclass(w.category, sk.errors.DuplicateKeys) for w in warned)
        for key in [*wanted, *asked]:
            found = rows.get((type(key), key), [])
            error = {0: sk.errors.KeyNotFound, 1: None}.get(len(found), sk.errors.AmbiguousKey)
            if error is None:
                assert ds.key(key)["n"] == found[0]
            else:
                with pytest.raises(error):
                    ds.key(key)


class masked:  # noqa: N801 - used as a context
    """Make hashes collide."""

    def __init__(self, mask: int) -> None:
        self.mask = mask

    def __enter__(self) -> None:
        self.patch = pytest.MonkeyPatch()
        for module in (keys, key_lookup):
            self.patch.setattr(module, "key_hash", lambda key: key_hash(key) & self.mask)

    def __exit__(self, *_: object) -> None:
        self.patch.undo()


def test_keys_that_several_records_have_are_told_of_at_each_open(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [{"id": "x"}, {"id": "y"}, {"id": "x"}])
    write(tmp_path / "b.jsonl", [{"id": "z"}, {"id": "x"}, {"id": "z"}])
    for _ in range(2):
        with pytest.warns(sk.errors.DuplicateKeys, match="5 records share 2 of the keys 'id'") as warned:
            ds = sk.open(tmp_path, key="id")
        text = str(warned[0].message)
        assert warned[0].filename == __file__
        assert (
            f"'x': {tmp_path / 'a.jsonl'} row 0, {tmp_path / 'a.jsonl'} row 2, {tmp_path / 'b.jsonl'} row 1"
            in text
        )
        assert f"'z': {tmp_path / 'b.jsonl'} row 0, {tmp_path / 'b.jsonl'} row 2" in text
    assert ds.key("y") == {"id": "y"}
    places = r"a\.jsonl row 0, .*a\.jsonl row 2, .*b\.jsonl row 1"
    with pytest.raises(sk.errors.AmbiguousKey, match=rf"3 records have the key 'x': .*{places}"):
        ds.key("x")
    with pytest.raises(KeyError):
        ds.key(["y", "z"])


def test_a_dataset_with_one_of_them_is_not_ambiguous(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [{"id": "x", "n": n} for n in range(4)])
    with pytest.warns(sk.errors.DuplicateKeys):
        ds = sk.open(tmp_path, key="id")
    assert ds[2:3].key("x")["n"] == 2
    assert ds.filter(lambda record: record["n"] == 3).key("x")["n"] == 3
    with pytest.raises(sk.errors.AmbiguousKey, match="2 records have"):
        ds[2:].key("x")


def test_many_duplicates_are_counted_and_not_read(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [{"lang": "en" if n % 3 else "de"} for n in range(12_000)])
    with pytest.warns(sk.errors.DuplicateKeys, match="12,000 records share 2 of the keys 'lang'") as warned:
        sk.open(tmp_path, key="lang")
    assert "row 27 and 3,990 more" in str(warned[0].message)


NO_KEYS = [
    ('{"a": 1, "b": 2}', r"has no field 'id' to be its key: it has \['a', 'b'\]"),
    ("[1]", "has no field 'id' to be its key: it is a list"),
    ('{"id": null}', "has the key None of type NoneType, and a key is a str or an int"),
    ('{"id": true}', "has the key True of type bool"),
    ('{"id": 1.0}', "has the key 1.0 of type float"),
    ('{"id": ["a"]}', r"has the key \['a'\] of type list"),
    ('{"id": "a", "id": null}', "has the key None"),
]


@pytest.mark.parametrize(
    ("jobs", "line", "says"),
    [*((1, *case) for case in NO_KEYS), *((2, *case) for case in sample(NO_KEYS, of=len(NO_KEYS)))],
)
def test_a_record_without_a_key_is_told_with_its_place(
    jobs: int, line: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_workers(jobs, monkeypatch)
    (tmp_path / "a.jsonl").write_text(f'{{"id": "x"}}\n{line}\n')
    with pytest.raises(sk.errors.BadKey, match=rf"a\.jsonl: record 1 at byte 12 {says}"):
        sk.open(tmp_path, key="id", index=sk.Index(jobs=jobs))


def in_workers(jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have keys read in worker processes at once, if there shall be any."""
    if jobs > 1:
        monkeypatch.setattr("seekable.parallel.map_ranges._PATIENCE_SECONDS", 0.0)


def test_what_the_fast_way_refuses_is_read_slowly(tmp_path: Path) -> None:
    lines = [
        '{"x": NaN, "id": 1}',
        '{"x": 1e400, "id": 2}',
        '{"x": "\\ud800", "id": 3}',
        '{"id": "\\ud800"}',
        '{"id": 4, "id": 5}',
        '{"\\u0069d": 6}',
        '{"id": 1234567890123456789012345678901234567890}',
        '  {"id": "\\u00e9"}  ',
    ]
    (tmp_path / "a.jsonl").write_text("\n\n".join(lines))
    ds = sk.open(tmp_path, key="id")
    wanted = [1, 2, 3, "\ud800", 5, 6, 1234567890123456789012345678901234567890, "é"]
    assert [ds.key(key)["id"] for key in wanted] == wanted


def test_a_corrupt_record_is_one(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n{"id": 2\n')
    with pytest.raises(sk.CorruptRecord, match="record 1 at byte 10"):
        sk.open(tmp_path, key="id")


def test_holes_have_no_keys(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1}\n{"id": 2\n{"id": 3}\n')
    for of in ("id", by_id):
        ds = sk.open(tmp_path, key=of, errors=lambda _: sk.HOLE)
        assert (ds.key(1), ds.key(3)) == ({"id": 1}, {"id": 3})
        with pytest.raises(sk.errors.KeyNotFound, match="there are 2 keys"):
            ds.key(2)


def failing(record: Record) -> str:
    if record["id"] == 40:
        message = "no good"
        raise ArithmeticError(message)
    return str(record["id"])


@pytest.mark.parametrize("jobs", sample([1, 2], of=2))
def test_an_error_of_a_key_function_tells_of_its_record(
    jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_workers(jobs, monkeypatch)
    corpus(tmp_path)
    with pytest.raises(ArithmeticError, match="no good") as caught:
        sk.open(tmp_path, key=failing, index=sk.Index(jobs=jobs))
    notes = "\n".join(caught.value.__notes__)
    assert "part-2.jsonl', row=0" in notes
    assert ("in a worker process" in notes) == (jobs == 2)


def test_any_decoder_has_keys_by_function(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one 1\ntwo 2\nthree 3\n")
    assert sk.open(tmp_path, key=lambda line: line.split()[0]).key("two") == "two 2"
    numbered = sk.open(tmp_path, decode=lambda line: int(line.split()[1]), key=lambda number: number * 10)
    assert numbered.key(30) == 3
    with pytest.raises(sk.errors.BadKey, match="has no field 'id' to be its key: it is a str"):
        sk.open(tmp_path, key="id")
    with pytest.raises(sk.errors.WrongType, match="key must be the name of a field or a function"):
        sk.open(tmp_path, key=3)  # type: ignore[arg-type]


def test_key_does_not_enter_the_fingerprint(tmp_path: Path) -> None:
    corpus(tmp_path)
    assert sk.open(tmp_path, key="id").fingerprint == sk.open(tmp_path).fingerprint
    assert repr(sk.open(tmp_path, key="id")).endswith(", key='id')>")


def test_without_keys_it_says_how_to_have_them(tmp_path: Path) -> None:
    corpus(tmp_path)
    for ds in (sk.open(tmp_path), sk.open(tmp_path).map(by_id), numbers(9)):
        with pytest.raises(sk.errors.InvalidArgument, match=r'sk\.open\(\.\.\., key="id"\)'):
            ds.key("r1")


def nodes(ds: sk.Dataset, folder: Path) -> Iterator[tuple[sk.Dataset, Callable[[int], Any]]]:
    """Yield datasets over 60 records, and what the record of key ``i`` is there: None if it is not."""
    other = folder / "other"
    write(other / "o.jsonl", [{"id": f"o{i}"} for i in range(7)])
    others = sk.open(other, key="id")
    parts = ds.split({"a": 0.5, "b": 0.5}, seed=1)
    in_a = {record["n"] for record in parts["a"]}
    yield ds, lambda i: i
    yield ds.map(lambda record: record), lambda i: i
    yield ds.map_batches(lambda records: records), lambda i: i
    yield ds[::-1], lambda i: i
    yield ds[5:50:3], lambda i: i if i in range(5, 50, 3) else None
    yield ds.take(10), lambda i: i if i < 10 else None
    yield ds.skip(10), lambda i: i if i >= 10 else None
    yield ds.shard(1, of=3), lambda i: i if i % 3 == 1 else None
    yield ds.select([7, 3, 7]), lambda i: i if i in (3, 7) else None
    yield ds.filter(lambda record: record["n"] % 5 == 0), lambda i: None if i % 5 else i
    yield parts["a"], lambda i: i if i in in_a else None
    yield sk.concat([parts["a"], parts["b"]]), lambda i: i
    yield sk.concat([others, ds, numbers(5)]), lambda i: i
    yield ds.repeat(3), lambda i: i
    yield ds.shuffle(seed=1, fixed=True), lambda i: i
    yield ds.shuffle(seed=1).epoch(4), lambda i: i
    yield ds.interleave(lanes=7), lambda i: i
    yield (
        ds.filter(lambda record: record["n"] > 20)[3:].shuffle(seed=3, fixed=True),
        lambda i: i if i > 23 else None,
    )


def test_every_steady_node_carries_keys_up(tmp_path: Path) -> None:
    write(tmp_path / "data" / "a.jsonl", [{"id": f"k{i}", "n": i} for i in range(60)])
    ds = sk.open(tmp_path / "data", key="id")
    for built, model in nodes(ds, tmp_path):
        there = [i for i in range(60) if model(i) is not None]
        assert [built.key(f"k{i}")["n"] for i in there] == there, built
        assert [record["n"] for record in built.key([f"k{i}" for i in there])] == there
        for i in set(range(60)) - set(there):
            with pytest.raises(sk.errors.KeyNotFound, match=rf"a\.jsonl row {i}, is not among the rows"):
                built.key(f"k{i}")
    assert [record["n"] for record in ds.batch(7).key("k20")] == list(range(14, 21))
    pair = sk.zip([ds, numbers(60)])
    assert pair.key("k20")[1] == 20
    assert sk.zip([numbers(60), ds[::-1]]).key("k20")[0] == 39


def test_sources_that_share_a_key_are_ambiguous_unless_it_is_one_position(tmp_path: Path) -> None:
    write(tmp_path / "data" / "a.jsonl", [{"id": f"k{i}", "n": i} for i in range(6)])
    ds, again = sk.open(tmp_path / "data", key="id"), sk.open(tmp_path / "data", key="id")
    assert sk.concat([ds, ds[3:]]).key("k4")["n"] == 4, "one record that comes twice"
    assert [part["n"] for part in sk.zip([ds, again]).key("k4")] == [4, 4]
    with pytest.raises(sk.errors.AmbiguousKey, match="2 records have the key 'k4'"):
        sk.concat([ds, again]).key("k4")
    assert sk.concat([ds, again.take(2)]).key("k4")["n"] == 4


def test_rows_that_move_with_the_epoch_have_no_keys(tmp_path: Path) -> None:
    corpus(tmp_path)
    ds = sk.open(tmp_path, key="id")
    for moving in (ds.shuffle(seed=1), sk.mix([ds, ds], seed=1), ds.shuffle(seed=1, window=2).take(3)):
        with pytest.raises(
            sk.errors.InvalidArgument, match=r"key\(\) needs rows that .* put it before shuffle"
        ):
            moving.key("r1")


def test_some_sources_without_keys_are_named_where_nothing_is_found(tmp_path: Path) -> None:
    corpus(tmp_path)
    ds = sk.concat([sk.open(tmp_path, key="id"), numbers(5)])
    with pytest.raises(sk.errors.KeyNotFound, match=r"1 of 2 sources were opened without key="):
        ds.key("nowhere")


def test_threads_forks_and_pickles_look_up(tmp_path: Path) -> None:
    records = corpus(tmp_path)
    ds = sk.open(tmp_path, key="id")
    pickled = pickle.dumps(ds)
    assert len(pickled) < 2000
    assert pickle.loads(pickled).key("r3") == records[3]
    barrier = threading.Barrier(4)

    def look(_: int) -> bool:
        barrier.wait(timeout=30)
        return bool([ds.key(record["id"]) for record in records] == records)

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(look, range(4)))
    pid = os.fork()
    if not pid:
        os._exit(0 if ds.key("r5") == records[5] else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_data_that_changed_is_not_read_by_old_keys(tmp_path: Path) -> None:
    corpus(tmp_path)
    ds = sk.open(tmp_path, key="id")
    write(tmp_path / "part-0.jsonl", [{"id": "new"}], seconds=9)
    with pytest.raises(sk.IndexStale):
        ds.key("r1")
    again = sk.open(tmp_path, key="id")
    assert again.key("new") == {"id": "new"}
    with pytest.raises(sk.errors.KeyNotFound):
        again.key("r1")


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_is_told_of_reading_keys(jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_workers(jobs, monkeypatch)
    records = corpus(tmp_path, 900)
    told: list[Progress] = []
    ds = sk.open(tmp_path, key="id", progress=told.append, index=sk.Index(jobs=jobs))
    assert [progress.task for progress in told][-1] == "reading keys"
    assert told[-1].is_done
    assert ds.key([record["id"] for record in records]) == records
    told.clear()
    sk.open(tmp_path, key="id", progress=told.append)
    assert told == []


READ = """
import sys
import seekable as sk
ds = sk.open(sys.argv[1], key="id", index=sk.Index(jobs=1))
print(len([ds.key(record["id"]) for record in ds]))
"""


def open_with_keys(folder: Path) -> None:
    sk.open(folder, key="id", index=sk.Index(jobs=1))


def check_kills(folder: Path, points: Callable[[Killer], Iterable[tuple[str | None, int]]]) -> list[int]:
    """Kill what opens a folder of which one file has changed, then open it; return the exit codes."""
    codes: list[int] = []
    records = corpus(folder)
    sk.open(folder, key="id")
    with Killer() as killer:
        for kind, number in points(killer):
            # One file changes, so that an old index is there to take the others' keys from.
            records[:20] = [{"id": f"new-{len(codes)}-{i}"} for i in range(20)]
            write(folder / "part-0.jsonl", records[:20], seconds=len(codes) + 1)
            codes.append(killer.kill_at(number, folder / ".seekable", open_with_keys, folder, kind=kind))
            ds = sk.open(folder, key="id")
            assert ds.key([record["id"] for record in records]) == records
            if codes[-1] == 0:
                break
    return codes


def test_killed_at_an_operation_of_each_kind_the_next_open_has_the_keys(tmp_path: Path) -> None:
    def points(killer: Killer) -> list[tuple[str | None, int]]:
        write(tmp_path / "part-0.jsonl", [{"id": f"first-{i}"} for i in range(20)], seconds=99)
        kinds = killer.operations(tmp_path / ".seekable", open_with_keys, tmp_path)
        assert {"open", "os.fsync", "os.rename", "os.remove"} <= {*kinds}
        return [*one_of_each_kind(kinds)]

    codes = check_kills(tmp_path, points)
    assert {*codes} == {KILLED}


@pytest.mark.exhaustive
def test_killed_at_any_file_operation_the_next_open_has_the_keys(tmp_path: Path) -> None:
    codes = check_kills(tmp_path, lambda _: ((None, number) for number in itertools.count(1)))
    assert codes.count(KILLED) >= 8


def test_processes_at_once_agree(tmp_path: Path) -> None:
    records = corpus(tmp_path, 600)
    command = [sys.executable, "-c", READ, str(tmp_path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4 if ALL else 2)]
    for process in processes:
        with process:
            assert process.communicate(timeout=60)[0].strip() == str(len(records))
    files = {file.suffix for file in (tmp_path / ".seekable").glob("keys-*")}
    assert files == {".json", ".u64"}
    assert len(list((tmp_path / ".seekable").glob("keys-*"))) == 2


@pytest.mark.parametrize("form", ["tar", "parquet"])
@pytest.mark.parametrize("key", ["id", by_id])
def test_columns_that_lack_the_key_hide_no_record_from_it(
    tmp_path: Path, form: str, key: str | Callable[[Record], Any]
) -> None:
    records = sk.from_sequence([{"id": f"r{i}", "text": f"text {i}"} for i in range(30)])
    if form == "parquet":
        records.write_parquet(tmp_path / "data")
    else:
        as_sample = {"id": "id.txt", "text": "txt"}
        named = records.map(lambda record: {as_sample[name]: value for name, value in record.items()})
        named.map(lambda record: {"__key__": record["id.txt"][::-1], **record}).write_tar(tmp_path / "data")
    if form == "tar":
        key = "id.txt" if isinstance(key, str) else (lambda record: record["id.txt"])
    text = "txt" if form == "tar" else "text"
    ds = sk.open(tmp_path / "data", key=key)
    narrow = ds.select_columns([text])
    assert narrow.key("r7") == {text: "text 7"}
    assert narrow.key(["r9", "r3"]) == [{text: "text 9"}, {text: "text 3"}]
    keys_found = narrow.keys()
    assert list(keys_found) == [f"r{i}" for i in range(30)]
    assert "r3" in keys_found
    with pytest.raises(sk.errors.KeyNotFound):
        narrow.key("r99")
    if isinstance(key, str):
        assert sk.open(tmp_path / "data", key=key, columns=[text]).key("r7") == {text: "text 7"}
    else:
        with pytest.raises(KeyError, match="id"):
            sk.open(tmp_path / "data", key=key, columns=[text]).key("r7")
