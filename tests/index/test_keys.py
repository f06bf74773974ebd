"""Key indexes as files: what they hold, what is taken over from older ones, what is removed."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import xxhash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cli import warm
from tests.index.corpus import write

import seekable as sk
from seekable.index.digest import key_hash
from seekable.index.key_files import KeyIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

calls: list[Any] = []


def counted(record: dict[str, Any]) -> Any:
    """Return the id of a record, and take note of it."""
    calls.append(record["id"])
    return record["id"]


def opened(asked: Any, **options: Any) -> tuple[sk.Dataset, list[Any]]:
    """Open with keys, and return which keys were read for it."""
    calls.clear()
    ds = sk.open(asked, key=counted, version=1, index=sk.Index(jobs=1, **options))
    return ds, list(calls)


def fill(path: Path, name: str, count: int = 5, *, seconds: float = 0) -> list[str]:
    """Write records with ids of this name."""
    ids = [f"{name}-{row}" for row in range(count)]
    write(path, b"".join(json.dumps({"id": key}).encode() + b"\n" for key in ids), seconds=seconds)
    return ids


def key_files(folder: Path, suffix: str) -> set[Path]:
    return set((folder / ".seekable").glob(f"keys-*{suffix}"))


def check(ds: sk.Dataset) -> None:
    for row, record in enumerate(ds):
        assert ds.key(record["id"]) == record
        assert ds._node.keys.index.rows(key_hash(record["id"])) == [row]  # type: ignore[attr-defined]


def test_the_file_is_sorted_hashes_then_rows(tmp_path: Path) -> None:
    ids = fill(tmp_path / "a.jsonl", "a", 50) + fill(tmp_path / "b.jsonl", "b", 7)
    opened(tmp_path)
    (pairs,) = key_files(tmp_path, ".u64")
    hashes, rows = np.fromfile(pairs, "<u8").reshape(2, len(ids))
    assert pairs.stat().st_size == 16 * len(ids)
    assert (np.diff(hashes.astype(object)) > 0).all()
    assert [key_hash(ids[row]) for row in rows] == hashes.tolist()
    (described,) = key_files(tmp_path, ".json")
    document = json.loads(described.read_text())
    assert document["seekable_keys"] == 1
    assert document["pairs"] == pairs.name
    assert [(file["name"], file["records"]) for file in document["files"]] == [
        ("a.jsonl", 50),
        ("b.jsonl", 7),
    ]
    assert described.read_text().count("\n") == 4


def test_a_second_open_reads_no_keys_and_writes_nothing(tmp_path: Path) -> None:
    fill(tmp_path / "a.jsonl", "a")
    opened(tmp_path)
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / ".seekable").iterdir()}
    ds, read = opened(tmp_path)
    assert read == []
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / ".seekable").iterdir()} == before
    check(ds)


def test_only_keys_of_new_and_changed_files_are_read(tmp_path: Path) -> None:
    a, b, c = (fill(tmp_path / f"{name}.jsonl", name) for name in "abc")
    assert opened(tmp_path)[1] == a + b + c
    b = fill(tmp_path / "b.jsonl", "changed", 9, seconds=1)
    ds, read = opened(tmp_path)
    assert read == b
    check(ds)
    early = fill(tmp_path / "0.jsonl", "early", 3)
    ds, read = opened(tmp_path)
    assert read == early
    check(ds)
    (tmp_path / "a.jsonl").unlink()
    ds, read = opened(tmp_path)
    assert read == []
    check(ds)
    with pytest.raises(sk.errors.KeyNotFound):
        ds.key("a-0")


def test_any_choice_and_order_of_files_takes_over_what_is_known(tmp_path: Path) -> None:
    for name in "abcd":
        fill(tmp_path / f"{name}.jsonl", name, ord(name) - 90)
    opened(tmp_path)
    for names in ("dcba", "b", "ca"):
        ds, read = opened([tmp_path / f"{name}.jsonl" for name in names])
        assert read == []
        check(ds)
    with pytest.warns(sk.errors.DuplicateKeys):
        ds, read = opened([tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "a.jsonl"])
    assert len(read) == 2 * 7, "those that share a hash are compared"
    assert ds._node.keys.index.rows(key_hash("a-1")) == [1, 1 + 7 + 8]  # type: ignore[attr-defined]


def test_other_ways_to_make_keys_are_other_indexes(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", b'{"id": 1, "n": 7}\n')
    by_id, by_n = sk.open(tmp_path, key="id"), sk.open(tmp_path, key="n")
    assert by_id.key(1) == by_n.key(7) == {"id": 1, "n": 7}
    with pytest.raises(sk.errors.KeyNotFound):
        by_n.key(1)
    for offset in (0, 1):
        ds = sk.open(tmp_path, key=lambda record: record["n"] + offset)
        assert ds.key(7 + offset)["id"] == 1
    text = sk.open(tmp_path, decode="text", key=len)
    assert text.key(17) == '{"id": 1, "n": 7}'


def test_files_of_several_roots_have_one_index(tmp_path: Path) -> None:
    fill(tmp_path / "one" / "a.jsonl", "one")
    two = fill(tmp_path / "two" / "a.jsonl", "two")
    ds, _ = opened([tmp_path / "one", tmp_path / "two"])
    check(ds)
    assert len(key_files(tmp_path / "one", "")) == 2
    assert not key_files(tmp_path / "two", "")
    three = fill(tmp_path / "two" / "b.jsonl", "three")
    ds, read = opened([tmp_path / "one", tmp_path / "two"])
    assert read == three
    assert ds.key(two) == [{"id": key} for key in two]
    check(ds)


def test_names_that_are_not_utf8_are_kept(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff [*] \n.jsonl"))
    fill(path, "a")
    opened(path)
    ds, read = opened(path)
    assert read == []
    check(ds)
    more = fill(tmp_path / "b.jsonl", "b")
    ds, read = opened([path, tmp_path / "b.jsonl"])
    assert read == more
    check(ds)


def test_nothing_has_keys_too(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", b"")
    for _ in range(2):
        with pytest.raises(sk.errors.KeyNotFound, match="there are 0 keys"):
            opened(tmp_path)[0].key("a")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    hashes=st.lists(
        st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 9), st.integers(2**64 - 9, 2**64 - 1)),
        max_size=99,
    ),
    asked=st.integers(0, 2**64 - 1),
)
def test_a_hash_is_found_wherever_it_is_and_however_often(
    hashes: list[int], asked: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    hashes.sort()
    rows = [(7 * place) % 1000 for place in range(len(hashes))]
    data = np.array([*hashes, *rows], "<u8").tobytes()
    path = tmp_path_factory.mktemp("pairs") / f"keys-{xxhash.xxh3_64_hexdigest(data)}.u64"
    path.write_bytes(data)
    index = KeyIndex(str(path), len(hashes), len(hashes), None)
    for wanted in {*hashes, asked, 0, 2**64 - 1}:
        assert index.rows(wanted) == [row for row, found in zip(rows, hashes, strict=True) if found == wanted]


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 8)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def garble(path: Path) -> None:
    path.write_bytes(b"\xff" + path.read_bytes()[1:])


@pytest.mark.parametrize(
    ("damage", "suffix"),
    [(damage, suffix) for damage in (cut, empty, Path.unlink) for suffix in (".json", ".u64")]
    + [(garble, ".json")],
)
def test_a_damaged_index_is_built_again(damage: Callable[[Path], None], suffix: str, tmp_path: Path) -> None:
    ids = fill(tmp_path / "a.jsonl", "a")
    opened(tmp_path)
    (file,) = key_files(tmp_path, suffix)
    damage(file)
    ds, read = opened(tmp_path)
    assert read == ids
    check(ds)


def test_wrong_rows_in_an_index_are_damage(tmp_path: Path) -> None:
    fill(tmp_path / "a.jsonl", "a")
    opened(tmp_path)
    (pairs,) = key_files(tmp_path, ".u64")
    numbers = np.fromfile(pairs, "<u8")
    numbers[5:] = (numbers[5:] + 1) % 5
    pairs.write_bytes(numbers.tobytes())
    ds, _ = opened(tmp_path)
    with pytest.raises(sk.IndexStale, match=r"damaged: .* it was removed"):
        ds.key("a-0")
    again, _ = opened(tmp_path)
    assert [again.key(f"a-{row}") for row in range(5)] == list(again)


def test_an_index_that_vanished_is_told_of(tmp_path: Path) -> None:
    fill(tmp_path / "a.jsonl", "a")
    ds, _ = opened(tmp_path)
    for file in key_files(tmp_path, ".u64"):
        file.unlink()
    with pytest.raises(sk.IndexStale, match=r"key index .* is gone or was cut; open the dataset again"):
        ds.key("a-1")


def test_indexes_of_files_that_changed_are_removed_an_hour_later(tmp_path: Path) -> None:
    fill(tmp_path / "a.jsonl", "a")
    opened(tmp_path)
    (old_pairs,) = key_files(tmp_path, ".u64")
    fill(tmp_path / "b.jsonl", "b")
    opened(tmp_path / "b.jsonl")
    opened(tmp_path)
    assert len(key_files(tmp_path, ".json")) == 3, "all are of files as they are"
    fill(tmp_path / "a.jsonl", "other", seconds=1)
    opened(tmp_path)
    assert len(key_files(tmp_path, ".json")) == 2, "that of b alone, and the new one"
    assert old_pairs in key_files(tmp_path, ".u64"), "somebody may have it open"
    for file in key_files(tmp_path, ".u64"):
        os.utime(file, (time.time() - 4000,) * 2)
    fill(tmp_path / "c.jsonl", "c")
    opened(tmp_path)
    named = {json.loads(file.read_text())["pairs"] for file in key_files(tmp_path, ".json")}
    assert {file.name for file in key_files(tmp_path, ".u64")} == named
    assert len(named) == 3
    assert opened(tmp_path / "b.jsonl")[1] == []


def test_index_dir_holds_the_keys_too(tmp_path: Path) -> None:
    fill(tmp_path / "data" / "a.jsonl", "a")
    ds, _ = opened(tmp_path / "data", folder=tmp_path / "indexes")
    check(ds)
    assert not (tmp_path / "data" / ".seekable").exists()
    assert len(list((tmp_path / "indexes").rglob("keys-*"))) == 2


# Everything is imported, and used once, before the rights are given up: the interpreter's own files may be
# readable for root alone.
AS_NOBODY = """
import os, sys, tempfile
from pathlib import Path
import seekable as sk
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "a.jsonl").write_text('{"id": 1}')
    sk.open(folder, key="id").key(1)
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
ds = sk.open(sys.argv[1], key=sys.argv[2])
print(ds.key("a-3"))
print(ds._node.keys.index.path)
"""


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that others may read, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    (folder / "cache").mkdir()
    (folder / "cache").chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user who cannot write")
def test_who_cannot_write_reads_what_is_there_and_else_builds_in_the_cache(shared: Path) -> None:
    data, cache = shared / "data", shared / "cache"
    lines = b"".join(b'{"id": "a-%d", "other": "a-%d"}\n' % (row, row) for row in range(5))
    write(data / "a.jsonl", lines)
    data.chmod(0o755)
    sk.open(data, key="id")
    for key, place in (("id", data / ".seekable"), ("other", cache)):
        done = warm.run(
            [str(data), key],
            program=AS_NOBODY,
            environment={**os.environ, "XDG_CACHE_HOME": str(cache)},
        )
        assert done.returncode == 0, done.stderr
        record, path = done.stdout.decode().splitlines()
        assert record == "{'id': 'a-3', 'other': 'a-3'}"
        assert path.startswith(f"{place}/")
