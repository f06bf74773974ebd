"""The cache on disk: what is kept, what is evicted, and what damage, kills and full disks leave of it."""

from __future__ import annotations

import errno
import gc
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
import xxhash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.killing import KILLED, Killer
from tests.thrift import some, wider

from seekable.errors import InvalidArgument
from seekable.remote.cache import disk_room
from seekable.remote.cache.disk_cache import (
    BYTES_VARIABLE,
    FOLDER_VARIABLE,
    UNIT_BYTES,
    DiskCache,
    disk_cache,
    object_key,
)
from seekable.remote.cache.disk_room import remove_until
from seekable.remote.cache.extents import KeptObject

UNITS = 6
SIZE = (UNITS - 1) * UNIT_BYTES + 1000


def key_of(number: int, size: int = SIZE) -> str:
    return object_key(f"s3://bucket/{number}.jsonl", size=size, identity=number)


def content(number: int, unit: int, size: int = SIZE) -> bytes:
    count = min(UNIT_BYTES, size - unit * UNIT_BYTES)
    return random.Random(f"{number} {unit}").randbytes(64) * (count // 64) + bytes(count % 64)


def units_of(cache: DiskCache, number: int, size: int = SIZE) -> list[bytes | None]:
    return [None if unit is None else bytes(unit) for unit in cache.load(key_of(number, size), 0, size)]


def save_all(cache: DiskCache, number: int, size: int = SIZE) -> None:
    for unit in range(-(-size // UNIT_BYTES)):
        cache.save(key_of(number, size), unit, content(number, unit, size))


def everything(number: int) -> list[bytes | None]:
    return [content(number, unit) for unit in range(UNITS)]


def disk_bytes(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*"))


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(str(tmp_path / "cache"), most_bytes=64 << 20)


def test_what_is_saved_is_loaded_in_this_process_and_another(cache: DiskCache) -> None:
    assert units_of(cache, 1) == [None] * UNITS
    cache.save(key_of(1), 3, content(1, 3))
    cache.save(key_of(1), UNITS - 1, content(1, UNITS - 1))
    found = units_of(cache, 1)
    assert found == [None, None, None, content(1, 3), None, content(1, UNITS - 1)]
    assert units_of(DiskCache(cache.folder), 1) == found
    assert (cache.counts.hits, cache.counts.misses, cache.counts.saved) == (2, 10, 2)


@pytest.mark.parametrize(
    ("start", "stop", "units"),
    [
        (0, 0, 0),
        (0, 1, 1),
        (UNIT_BYTES - 1, UNIT_BYTES + 1, 2),
        (UNIT_BYTES, 2 * UNIT_BYTES, 1),
        (SIZE - 1, SIZE, 1),
    ],
)
def test_the_units_that_hold_a_range_are_loaded(cache: DiskCache, start: int, stop: int, units: int) -> None:
    save_all(cache, 1)
    found = cache.load(key_of(1), start, stop)
    assert len(found) == units
    assert all(found)


def test_objects_of_another_address_size_or_content_are_others() -> None:
    address = "s3://bucket/a.jsonl"
    keys = {
        object_key(address, size=5, identity=7),
        object_key(address, size=6, identity=7),
        object_key(address, size=5, identity=8),
        object_key("s3://bucket~1a2b/a.jsonl", size=5, identity=7),
        object_key("s3://bucket/b.jsonl", size=5, identity=7),
    }
    assert len(keys) == 5
    signed = object_key("https://me:pw@host/a?X-Amz-Signature=s3cret", size=5, identity=7)
    assert signed == object_key("https://host/a", size=5, identity=7)
    assert "pw" not in signed
    assert "s3cret" not in signed


def test_a_unit_of_another_length_is_refused(cache: DiskCache) -> None:
    with pytest.raises(ValueError, match=r"unit 0 of s3://bucket/1\.jsonl has 262144 bytes"):
        cache.save(key_of(1), 0, b"short")
    with pytest.raises(ValueError, match="bytes"):
        cache.save(key_of(1), UNITS, b"behind the end")


def files_of(folder: str) -> list[Path]:
    return sorted(path for path in Path(folder).rglob("*") if path.is_file())


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 0xFF]))


def test_flipped_bytes_are_noticed_counted_and_saved_again(cache: DiskCache) -> None:
    save_all(cache, 1)
    extents = [path for path in files_of(cache.folder) if path.suffix == ".ext"]
    flip(extents[1], 5)
    fresh = DiskCache(cache.folder)
    found = units_of(fresh, 1)
    assert found.count(None) == 1
    assert fresh.counts.damaged == 1
    save_all(fresh, 1)
    assert units_of(fresh, 1) == everything(1)
    assert units_of(fresh, 1) == everything(1)
    assert fresh.counts.damaged == 1


@pytest.mark.parametrize("harm", ["flip", "truncate", "empty", "grow", "remove"])
def test_no_harm_to_any_file_gives_wrong_bytes(tmp_path: Path, harm: str) -> None:
    whole = DiskCache(str(tmp_path / "whole"), most_bytes=64 << 20)
    save_all(whole, 1)
    names = [path.relative_to(whole.folder) for path in files_of(whole.folder)]
    for number, name in enumerate(names):
        folder = tmp_path / str(number)
        shutil.copytree(whole.folder, folder)
        size = (folder / name).stat().st_size
        places = sorted({0, size // 2, size - 1} - {-1}) if harm == "flip" else [0]
        for at in places:
            if harm == "flip" and size:
                flip(folder / name, at)
            elif harm == "truncate":
                os.truncate(folder / name, size // 2)
            elif harm == "empty":
                os.truncate(folder / name, 0)
            elif harm == "grow":
                os.truncate(folder / name, size + 4096)
            elif harm == "remove":
                (folder / name).unlink(missing_ok=True)
            harmed = DiskCache(str(folder), most_bytes=64 << 20)
            for found, right in zip(units_of(harmed, 1), everything(1), strict=True):
                assert found in (None, right)
            save_all(harmed, 1)
            assert units_of(harmed, 1) == everything(1)


def test_a_folder_that_is_deleted_in_use_is_made_again(cache: DiskCache) -> None:
    save_all(cache, 1)
    views = cache.load(key_of(1), 0, SIZE)
    shutil.rmtree(cache.folder)
    claim = cache.claim(key_of(2), 0)
    assert claim is not None
    with claim:
        save_all(cache, 2)
    assert units_of(cache, 2) == everything(2)
    assert [bytes(view) for view in views if view is not None] == everything(1)
    save_all(cache, 1)
    assert units_of(DiskCache(cache.folder), 1) == everything(1)
    assert disk_bytes(Path(cache.folder)) <= cache.used_bytes()


def test_the_limit_holds_and_the_oldest_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 10 << 20
    cache = DiskCache(str(tmp_path / "cache"), most_bytes=limit)
    now = 1_000_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    for number in range(20):
        now += 100
        save_all(cache, number)
        assert units_of(cache, 0) == everything(0)
        assert disk_bytes(tmp_path) <= limit + limit // 16
    assert units_of(cache, 19) == everything(19)
    assert units_of(cache, 3) == [None] * UNITS
    assert cache.counts.not_kept == 0
    assert cache.counts.evicted_bytes > limit


def test_what_a_plan_needs_goes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = DiskCache(str(tmp_path / "cache"), most_bytes=10 << 20)
    now = 1_000_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    save_all(cache, 0)
    cache.note_need(key_of(0), range(UNITS), 5000)
    for number in range(1, 20):
        now += 100
        save_all(cache, number)
    assert units_of(DiskCache(cache.folder), 0) == everything(0)
    now += 10_000
    for number in range(20, 40):
        now += 100
        save_all(cache, number)
    assert units_of(DiskCache(cache.folder), 0) == [None] * UNITS


ONE_EXTENT = 1000
"""The size of objects that take one extent each, all of them as many bytes on disk."""


@settings(
    max_examples=some(45, of=3), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    entries=st.lists(
        st.tuples(st.integers(-50, 50), st.one_of(st.none(), st.integers(-40, 40))),
        min_size=1,
        max_size=12,
        unique_by=(lambda entry: entry[0], lambda entry: entry[1] if entry[1] is not None else object()),
    ),
    share=st.floats(0, 1),
    spares=st.booleans(),
)
def test_extents_go_in_the_order_of_a_model(
    entries: list[tuple[int, int | None]], share: float, *, spares: bool
) -> None:
    """An entry is the time of last use of an object, and the time until which a plan needs it."""
    now = 1_000_000_000
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        cache = DiskCache(folder, most_bytes=64 << 20)
        for number, (used, needed) in enumerate(entries):
            patch.setattr(time, "time", lambda used=used: float(now + used))
            save_all(cache, number, ONE_EXTENT)
            if needed is not None:
                patch.setattr(time, "time", lambda: float(now))
                cache.note_need(key_of(number, ONE_EXTENT), range(1), needed - 1 if needed > 0 else needed)
        patch.setattr(time, "time", lambda: float(now))
        objects = [path for path in Path(folder).glob("objects/*/*") if path.is_dir()]
        size = sum(disk_bytes(each) + each.stat().st_blocks * 512 for each in objects)
        most = int(size * share)
        removed = remove_until(os.path.join(folder, "objects"), most, now=now, spares=spares)
        kept, spared = expected_after(entries, size // len(entries), most, spares=spares)
        other = DiskCache(folder)
        found = [n for n in range(len(entries)) if units_of(other, n, ONE_EXTENT) != [None]]
        assert (found, removed.spared) == (kept, spared)


def expected_after(
    entries: list[tuple[int, int | None]], size: int, most: int, *, spares: bool
) -> tuple[list[int], bool]:
    """Remove the first of these until the rest fits: not needed, unused longest; then needed latest."""
    kept = list(range(len(entries)))
    while kept and size * len(kept) > most:
        done = [number for number in kept if (entries[number][1] or 0) <= 1]
        if done:
            kept.remove(min(done, key=lambda number: entries[number][0]))
        elif spares:
            return kept, True
        else:
            kept.remove(max(kept, key=lambda number: entries[number][1] or 0))
    return kept, False


def test_what_is_needed_is_not_evicted_for_other_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = DiskCache(str(tmp_path / "cache"), most_bytes=10 << 20)
    for number in range(10):
        cache.note_need(key_of(number), range(UNITS), 60)
        save_all(cache, number)
    kept = [units_of(DiskCache(cache.folder), number) for number in range(10)]
    assert kept[:7] == [everything(number) for number in range(7)]
    assert cache.counts.evicted_bytes == 0
    assert cache.counts.not_kept > 0
    monkeypatch.setattr(cache._room, "_full_until", 0.0)
    cache.note_need(key_of(0), range(UNITS), 0)
    cache.note_need(key_of(10), range(UNITS), 60)
    save_all(cache, 10)
    assert units_of(DiskCache(cache.folder), 10)[:4] == everything(10)[:4]
    assert units_of(DiskCache(cache.folder), 0) != kept[0]
    assert [units_of(DiskCache(cache.folder), number) for number in range(1, 10)] == kept[1:]
    assert disk_bytes(tmp_path) <= (10 << 20) * 17 // 16


def test_an_evicted_extent_keeps_its_bytes_for_a_reader(tmp_path: Path) -> None:
    cache = DiskCache(str(tmp_path / "cache"), most_bytes=8 << 20)
    save_all(cache, 1)
    views = cache.load(key_of(1), 0, SIZE)
    other = DiskCache(cache.folder, most_bytes=8 << 20)
    assert other.sweep(keep_bytes=0) == 0
    assert not any(path.suffix == ".ext" for path in files_of(cache.folder))
    assert [bytes(view) for view in views if view is not None] == everything(1)
    assert units_of(DiskCache(cache.folder), 1) == [None] * UNITS
    # The reader finds what another process saves afterwards, although it has maps of the old files.
    save_all(other, 1)
    for _ in range(2):
        assert units_of(cache, 1) == everything(1)


@pytest.mark.parametrize("limit", [1, UNIT_BYTES, 2 * UNIT_BYTES + 30_000, 1 << 20])
def test_a_limit_of_any_size_holds(tmp_path: Path, limit: int) -> None:
    cache = DiskCache(str(tmp_path / "cache"), most_bytes=limit)
    for number in range(3):
        save_all(cache, number)
        assert disk_bytes(tmp_path / "cache" / "objects") <= limit + limit // 16 or limit < UNIT_BYTES
    assert cache.counts.saved + cache.counts.not_kept == 3 * UNITS
    assert bool(cache.counts.saved) == (limit >= UNIT_BYTES + 30_000)


def test_a_lower_limit_counts_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "cache"))
    for limit in (4 << 20, 1 << 20):
        monkeypatch.setenv(BYTES_VARIABLE, str(limit))
        cache = disk_cache()
        assert cache is not None
        if limit > 1 << 20:
            save_all(cache, 1)
            save_all(cache, 2)
        assert 0 < disk_bytes(tmp_path / "cache") <= limit * 17 // 16


def test_a_full_disk_is_no_error(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.pwrite

    def full(descriptor: int, data: bytes, at: int) -> int:
        if len(data) > 100:
            write(descriptor, bytes(data)[:100], at)
            raise OSError(errno.ENOSPC, "no space left on device")
        return write(descriptor, data, at)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        save_all(cache, 1)
    assert (cache.counts.saved, cache.counts.not_kept) == (0, UNITS)
    assert units_of(cache, 1) == [None] * UNITS
    assert cache.used_bytes() < UNIT_BYTES  # What failed takes no room.
    save_all(cache, 1)
    assert units_of(cache, 1) == everything(1)
    assert cache.used_bytes() > UNITS * UNIT_BYTES // 2


def test_a_part_of_the_disk_stays_free(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    save_all(cache, 1)
    monkeypatch.setattr(disk_room, "free_bytes", lambda _: -(1 << 20))
    save_all(cache, 2)
    assert units_of(cache, 2) == [None] * UNITS
    assert cache.counts.not_kept == UNITS
    assert cache.counts.evicted_bytes


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = DiskCache(str(tmp_path / "file" / "cache"))
    save_all(cache, 1)
    assert cache.claim(key_of(1), 0) is not None
    assert units_of(cache, 1) == [None] * UNITS
    assert cache.counts.not_kept == UNITS
    assert cache.most_bytes is None


def test_the_variables_choose_folder_and_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "here"))
    monkeypatch.delenv(BYTES_VARIABLE, raising=False)
    cache = disk_cache()
    assert cache is not None
    assert cache is disk_cache()
    save_all(cache, 1)
    chosen = cache.most_bytes
    assert chosen is not None
    free = shutil.disk_usage(tmp_path).free
    assert free // 4 < chosen < free
    assert (tmp_path / "here" / "objects").is_dir()
    monkeypatch.setenv(BYTES_VARIABLE, str(1 << 20))
    limited = disk_cache()
    assert limited is not None
    assert limited.most_bytes == 1 << 20
    monkeypatch.setenv(BYTES_VARIABLE, "0")
    assert disk_cache() is None
    monkeypatch.setenv(BYTES_VARIABLE, "much")
    with pytest.raises(InvalidArgument, match=r"SEEKABLE_REMOTE_BYTES must be a number of bytes.*'much'"):
        disk_cache()


def test_a_claim_holds_for_threads_and_processes_until_it_is_released(cache: DiskCache) -> None:
    key = key_of(1)
    claim = cache.claim(key, 0)
    assert claim is not None
    assert cache.claim(key, 0) is None
    assert DiskCache(cache.folder).claim(key, 0) is None
    other = cache.claim(key, 1)
    assert other is not None
    claim.release()
    again = DiskCache(cache.folder).claim(key, 0)
    assert again is not None
    claim.release()
    assert cache.claim(key, 0) is None


def test_several_units_are_claimed_together_or_not_at_all(cache: DiskCache) -> None:
    key, other = key_of(1), DiskCache(cache.folder)
    claim = cache.claim_units(key, range(2, 6))
    assert claim is not None
    for unit in range(8):
        single = other.claim(key, unit)
        assert (single is None) == (2 <= unit < 6)
        del single
    assert other.claim_units(key, range(5, 8)) is None
    assert cache.claim_units(key, range(2)) is not None
    claim.release()
    again = other.claim_units(key, range(5, 8))
    assert again is not None
    assert cache.claim_units(key, range(2, 6)) is None, "unit 5 is claimed"
    assert cache.claim_units(key, range(2, 5)) is not None


def test_units_that_this_process_wrote_are_read_without_a_check_of_their_digests(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_all(cache, 1)
    checked: list[int] = []
    digest = xxhash.xxh3_64_intdigest

    def noted_digest(data: bytes, seed: int) -> int:
        checked.append(len(data))
        return digest(data, seed)

    monkeypatch.setattr(xxhash, "xxh3_64_intdigest", noted_digest)
    assert units_of(cache, 1) == everything(1)
    assert not checked
    assert units_of(DiskCache(cache.folder), 1) == everything(1)
    assert sum(checked) == SIZE


def test_objects_may_be_opened_while_others_are_compared(cache: DiskCache) -> None:
    for number in range(64):
        cache.save(key_of(number, 8), 0, b"good day")
    objects, numbers = cache._open_objects, itertools.count(64)
    comparing, opened = threading.current_thread(), []

    # A collection of garbage runs code of Python while a list is made: then another thread may open objects.
    def collected(_phase: str, _info: object) -> None:
        if threading.current_thread() is comparing and not objects._mutex.locked():
            opened.append(next(numbers))
            objects._objects[f"{opened[-1]}"] = objects.open(key_of(0, 8))  # type: ignore[assignment]

    thresholds = gc.get_threshold()
    gc.callbacks.append(collected)
    gc.set_threshold(1)
    try:
        cache.note_reads(1 << 30, {})
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(collected)
    assert opened


def test_a_forked_child_reads_and_claims_and_leaves_the_parents_claims(cache: DiskCache) -> None:
    save_all(cache, 1)
    assert units_of(cache, 1) == everything(1)
    claim = cache.claim(key_of(2), 0)
    assert claim is not None
    child = os.fork()
    if not child:
        code = 1
        try:
            claim.release()
            fine = cache.claim(key_of(2), 0) is None and cache.claim(key_of(2), 1) is not None
            save_all(cache, 3)
            code = (
                0
                if fine and units_of(cache, 1) == everything(1) and units_of(cache, 3) == everything(3)
                else 2
            )
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert DiskCache(cache.folder).claim(key_of(2), 0) is None
    claim.release()
    assert DiskCache(cache.folder).claim(key_of(2), 0) is not None
    assert units_of(cache, 3) == everything(3)


FETCH = """
import sys, time
from seekable.remote.cache import disk_room
from seekable.remote.cache.disk_cache import UNIT_BYTES, DiskCache
from tests.remote.cache.test_disk_cache import SIZE, UNITS, content, key_of
folder, seed = sys.argv[1:]
import random
cache = DiskCache(folder, most_bytes=64 << 20)
wanted = [(number, unit) for number in range(3) for unit in range(UNITS)]
random.Random(seed).shuffle(wanted)
fetched = 0
for number, unit in wanted:
    key, start = key_of(number), unit * UNIT_BYTES
    def load():
        return cache.load(key, start, min(start + UNIT_BYTES, SIZE))[0]
    while (data := load()) is None:
        claim = cache.claim(key, unit)
        if claim is None:
            time.sleep(0.001)
            continue
        with claim:
            if load() is None:
                fetched += 1
                cache.save(key, unit, content(number, unit))
    assert bytes(data) == content(number, unit)
print(fetched)
"""


@pytest.mark.exhaustive
def test_four_processes_fetch_every_unit_once(tmp_path: Path) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", FETCH, str(tmp_path / "cache"), str(seed)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(4)
    ]
    counts = [int(child.communicate(timeout=60)[0]) for child in children]
    assert sum(counts) == 3 * UNITS


def test_threads_fetch_every_unit_once(cache: DiskCache) -> None:
    fetched: list[tuple[int, int]] = []
    wrong: list[tuple[int, int]] = []

    def fetch(seed: int) -> None:
        wanted = [(number, unit) for number in range(2) for unit in range(UNITS)]
        random.Random(seed).shuffle(wanted)
        for number, unit in wanted:
            start = unit * UNIT_BYTES
            while (data := cache.load(key_of(number), start, start + 1)[0]) is None:
                claim = cache.claim(key_of(number), unit)
                if claim is None:
                    time.sleep(0.0005)
                    continue
                with claim:
                    if cache.load(key_of(number), start, start + 1)[0] is None:
                        fetched.append((number, unit))
                        cache.save(key_of(number), unit, content(number, unit))
            if bytes(data) != content(number, unit):
                wrong.append((number, unit))

    threads = [threading.Thread(target=fetch, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert sorted(fetched) == sorted(set(fetched))
    assert len(fetched) == 2 * UNITS


LIMIT = 4 << 20


def fill(folder: str, first: int) -> None:
    cache = DiskCache(folder, most_bytes=LIMIT)
    for number in range(first, first + 12):
        save_all(cache, number)
        for found, right in zip(units_of(cache, number), everything(number), strict=True):
            assert found in (None, right)
        with cache._ledger.locked():  # Nobody writes or evicts meanwhile.
            assert disk_bytes(Path(folder)) <= LIMIT + LIMIT // 16


@pytest.mark.exhaustive
def test_the_limit_holds_while_four_processes_write(tmp_path: Path) -> None:
    program = (
        "import sys; from tests.remote.cache.test_disk_cache import fill; fill(sys.argv[1], int(sys.argv[2]))"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "cache"), str(100 * number)])
        for number in range(4)
    ]
    assert [child.wait(timeout=60) for child in children] == [0] * 4
    assert disk_bytes(tmp_path / "cache") <= LIMIT + LIMIT // 16


def write_some(folder: str) -> None:
    cache = DiskCache(folder, most_bytes=2 << 20)
    for number in range(3):
        save_all(cache, number)


def check_after_kill(folder: str) -> None:
    cache = DiskCache(folder, most_bytes=2 << 20)
    for number in range(3):
        for found, right in zip(units_of(cache, number), everything(number), strict=True):
            assert found in (None, right)
    assert disk_bytes(Path(folder)) <= (2 << 20) + (2 << 20) // 16
    for number in (7, 8):
        save_all(cache, number)
    assert units_of(cache, 8)[-1] == everything(8)[-1]
    assert disk_bytes(Path(folder)) <= (2 << 20) + (2 << 20) // 16
    assert cache.counts.not_kept == 0
    assert cache.claim(key_of(0), 0) is not None


@pytest.mark.exhaustive
def test_a_kill_at_any_operation_leaves_it_good(tmp_path: Path) -> None:
    with Killer() as killer:
        kinds = killer.operations(tmp_path / "0", write_some, str(tmp_path / "0"))
        for operation in range(1, len(kinds) + 1, wider(1)):
            folder = tmp_path / str(operation)
            assert killer.kill_at(operation, folder, write_some, str(folder)) == KILLED
            check_after_kill(str(folder))
            shutil.rmtree(folder, ignore_errors=True)


def write_and_tell(folder: str, fifo: str) -> None:
    """Tell of each write, so that the process can be killed between any two of them."""
    writer = os.open(fifo, os.O_WRONLY)
    write = os.pwrite

    def told(descriptor: int, data: bytes, at: int) -> int:
        os.write(writer, b".")
        return write(descriptor, data, at)

    os.pwrite = told  # type: ignore[assignment]
    write_some(folder)


@pytest.mark.exhaustive
@pytest.mark.parametrize("writes", range(1, 40, 3))
def test_a_kill_at_any_write_leaves_it_good(tmp_path: Path, writes: int) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with Killer() as killer:
        killer.kill_after(writes, fifo, write_and_tell, str(tmp_path / "cache"), str(fifo))
    check_after_kill(str(tmp_path / "cache"))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["save", "load", "sweep", "reopen", "delete"]), st.integers(0, 2), st.integers(0, 2)
    ),
    max_size=25,
)


@settings(max_examples=some(25, of=3), deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_it_is_a_dictionary_that_may_forget(steps: list[tuple[str, int, int]]) -> None:
    size = 2 * UNIT_BYTES + 77
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cache")
        caches = [DiskCache(path, most_bytes=5 * UNIT_BYTES) for _ in range(2)]
        model: dict[tuple[int, int], bytes] = {}
        for at, (step, number, unit) in enumerate(steps):
            cache = caches[at % 2]
            if step == "save":
                data = content(number, unit, size)
                cache.save(key_of(number, size), unit, data)
                model[number, unit] = data
            elif step == "sweep":
                cache.sweep(keep_bytes=UNIT_BYTES * 2)
            elif step == "reopen":
                caches[at % 2] = DiskCache(path, most_bytes=5 * UNIT_BYTES)
            elif step == "delete":
                shutil.rmtree(path, ignore_errors=True)
            found = units_of(caches[at % 2], number, size)[unit]
            assert found is None or found == model[number, unit]
            if step == "save":
                assert found == model[number, unit]
            assert disk_bytes(Path(path)) <= 5 * UNIT_BYTES * 17 // 16


def test_a_process_that_is_stopped_in_a_write_does_not_stop_the_others(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_room, "_PATIENCE_SECONDS", 0.01)
    other = DiskCache(cache.folder, most_bytes=64 << 20)
    with other._ledger.locked():
        cache.save(key_of(1), 0, content(1, 0))
    cache.save(key_of(1), 0, content(1, 0))
    # It does not wait again and again.
    assert (cache.counts.not_kept, cache.counts.saved) == (2, 0)
    cache._room._full_until = 0
    cache.save(key_of(1), 0, content(1, 0))
    assert cache.counts.saved == 1


def test_the_ledger_counts_units_before_they_are_written(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill at the end of a write leaves no bytes that it does not have."""
    counted = []
    write = KeptObject.write

    def written(self: KeptObject, units: range, data: bytes, second: int) -> None:
        write(self, units, data, second)
        counted.append(cache.used_bytes() >= disk_bytes(Path(cache.folder, "objects")))

    monkeypatch.setattr(KeptObject, "write", written)
    save_all(cache, 1)
    assert counted == [True] * UNITS
