from __future__ import annotations

import contextlib
import gc
import itertools
import os
import pickle
import resource
import subprocess
import sys
import threading
import time
import weakref
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seekable.errors import IndexStale
from seekable.storage import mapped
from seekable.storage.mapped import MappedFile, OpenFiles, most_maps, next_use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "data"
    file.write_bytes(b"good day")
    return file


def opened(path: Path) -> MappedFile:
    status = path.stat()
    return MappedFile(str(path), size=status.st_size, mtime_ns=status.st_mtime_ns)


def test_the_last_file_goes_quietly_when_the_interpreter_ends(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = opened(path)
    with monkeypatch.context() as patch:
        # The names of a module are None by then.
        patch.setattr(mapped, "_descriptors", None)
        file.__del__()
    assert file.view[0:1]


def descriptors(path: Path) -> int:
    """Return how many descriptors of this process are of a file; other tests leave theirs at any time."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # A thread closed it meanwhile.
            found += os.readlink(f"/proc/self/fd/{name}") == str(path)
    return found


def test_the_view_is_the_file(path: Path) -> None:
    assert bytes(opened(path).view[:]) == b"good day"
    opened(path).check()


def test_an_empty_file_has_an_empty_view(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    file = opened(tmp_path / "empty")
    file.check()
    assert bytes(file.view[:]) == b""


def test_an_open_file_is_used_again(path: Path) -> None:
    files = OpenFiles(2)
    assert files.open(0, lambda: opened(path)) is files.open(0, lambda: opened(path))
    assert len(files) == 1


def test_a_change_of_a_file_that_is_read_all_the_time_is_found_within_50_ms(path: Path) -> None:
    file = opened(path)
    for _ in range(1000):
        file.check()
    path.write_bytes(b"bad days")
    changed = time.monotonic()
    assert last_check_that_passes(file) - changed < 0.05


def last_check_that_passes(file: MappedFile) -> float:
    """Check a file until it is found to have changed; return when the check before that began."""
    last = 0.0
    while True:
        now = time.monotonic()
        try:
            file.check()
        except IndexStale:
            return last
        last = now


def test_a_file_that_is_read_all_the_time_is_looked_at_once_in_50_ms(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, looks = opened(path), list[float]()
    fstat = os.fstat

    def seen(descriptor: int) -> os.stat_result:
        looks.append(time.monotonic())
        return fstat(descriptor)

    monkeypatch.setattr(os, "fstat", seen)
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        file.check()
    later = looks[mapped._FIRST_LOOKS :]
    assert len(looks) > mapped._FIRST_LOOKS
    assert all(after - before > 0.049 for before, after in itertools.pairwise(later))


@pytest.mark.parametrize("checks", [0, 1, mapped._FIRST_LOOKS - 1])
def test_a_file_that_was_read_a_few_times_is_looked_at_each_time(path: Path, checks: int) -> None:
    file = opened(path)
    for _ in range(checks):
        file.check()
    path.write_bytes(b"bad days")
    with pytest.raises(IndexStale, match="modified at"):
        file.check()


def _append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"!")


def _replace(path: Path) -> None:
    status = path.stat()
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)


def _rewrite(path: Path) -> None:
    path.write_bytes(b"bad luck")
    os.utime(path, ns=(0, 1))


def _truncate(path: Path) -> None:
    os.truncate(path, 3)


def _move_away(path: Path) -> None:
    path.rename(path.with_name("moved"))


CHANGES: list[Callable[[Path], None]] = [_append, _replace, _rewrite, _truncate, _move_away, Path.unlink]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_an_open_file_is_noticed_each_time(path: Path, change: Callable[[Path], None]) -> None:
    file = opened(path)
    change(path)
    for _ in range(2):
        with pytest.raises(IndexStale, match=r"indexed with 8 bytes.*[Oo]pen the dataset again"):
            file.check()


@pytest.mark.parametrize("change", [_append, _rewrite, _truncate, _move_away, Path.unlink])
def test_a_file_that_was_changed_before_is_not_opened(path: Path, change: Callable[[Path], None]) -> None:
    status = path.stat()
    change(path)
    with pytest.raises(IndexStale):
        MappedFile(str(path), size=status.st_size, mtime_ns=status.st_mtime_ns)


def test_a_file_of_another_size_and_the_same_time_is_not_opened(path: Path) -> None:
    status = path.stat()
    _append(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(IndexStale, match=r"now has 9 bytes.*indexed with 8 bytes"):
        MappedFile(str(path), size=status.st_size, mtime_ns=status.st_mtime_ns)


@pytest.mark.parametrize(
    "change",
    [lambda path: path.chmod(0o600), lambda path: os.link(path, path.with_name("link"))],
    ids=["mode", "link"],
)
def test_what_leaves_the_content_alone_is_no_change(path: Path, change: Callable[[Path], None]) -> None:
    file = opened(path)
    change(path)
    file.check()
    file.check()


def test_a_stale_file_leaves_no_descriptor_open(path: Path) -> None:
    for _ in range(3):
        with pytest.raises(IndexStale):
            MappedFile(str(path), size=1, mtime_ns=1)
    gc.collect()
    assert descriptors(path) == 0


@pytest.fixture
def few_descriptors(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for files in list(mapped._sources.values()):
        files.close()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    others = len(os.listdir("/dev/fd"))  # Those of tests that ran before in this process.
    monkeypatch.setattr(mapped, "_RESERVED_DESCRIPTORS", 128 + others)
    resource.setrlimit(resource.RLIMIT_NOFILE, (300 + others, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("few_descriptors")
def test_all_sources_together_leave_descriptors_to_others(tmp_path: Path) -> None:
    assert most_maps() == 300 - 128
    for number in range(400):
        (tmp_path / str(number)).write_bytes(b"%d" % number)
    sources = [OpenFiles(128), OpenFiles(128), OpenFiles(1)]
    held = sources[2].open(0, lambda: opened(tmp_path / "0"))
    for number in range(400):
        found = sources[number % 2].open(number, partial(opened, tmp_path / str(number)))
        assert bytes(found.view[:]) == b"%d" % number
        assert sum(map(len, sources)) <= most_maps()
    assert [len(files) > 80 for files in sources] == [True, True, False]
    held.check()


def test_a_closed_file_stays_readable_and_is_checked(path: Path) -> None:
    files = OpenFiles(1)
    file = files.open(0, lambda: opened(path))
    part = file.view[5:]
    assert descriptors(path) == 1
    files.close()
    assert descriptors(path) == 0
    assert bytes(part) == b"day"
    file.check()
    file.advise(0, 8)
    path.unlink()
    with pytest.raises(IndexStale, match="is not there any more"):
        file.check()


def test_the_file_used_least_recently_is_closed_first(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / str(number)).write_bytes(b"%d" % number)
    files = OpenFiles(3)
    known: dict[int, weakref.ref[MappedFile]] = {}
    for number in (0, 1, 2, 0, 1, 0, 3, 1, 4, 5):
        file = known.get(number, lambda: None)()
        file = file or files.open(number, partial(opened, tmp_path / str(number)))
        file.last_use = next_use()
        known[number] = weakref.ref(file)
        del file
    assert sorted(number for number, file in known.items() if file()) == [1, 4, 5]


def test_a_file_that_cannot_be_opened_takes_no_place(path: Path) -> None:
    files = OpenFiles(1)
    for _ in range(3):
        with pytest.raises(IndexStale):
            files.open(0, lambda: MappedFile(str(path), size=1, mtime_ns=1))
    assert files.open(0, lambda: opened(path)).size == 8


def test_the_bound_follows_the_limit_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, maps in ((64, 32), (1024, 896), (1 << 20, 4096), (resource.RLIM_INFINITY, 4096)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        assert most_maps() == maps


def test_threads_may_open_and_check_at_once(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(200)]
    for number, file in enumerate(paths):
        file.write_bytes(b"%d" % number)
    wrong: list[object] = []
    files = OpenFiles(3)

    def work() -> None:
        for number, file in enumerate(paths):
            found = files.open(number, partial(opened, file))
            found.check()
            if bytes(found.view[:]) != b"%d" % number:
                wrong.append(number)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    # Two threads that open the same file at once keep one of the two, in whose place another one was closed.
    assert 1 <= len(files) <= 3


FORKING = """
import os, sys
from seekable.storage.mapped import MappedFile, OpenFiles
path = sys.argv[1]
status = os.stat(path)
files = OpenFiles(1)
make = lambda: MappedFile(path, size=status.st_size, mtime_ns=status.st_mtime_ns)
mine = files.open(0, make)
files._changed.acquire()  # as if another thread were opening a file now
child = os.fork()
if not child:
    other = files.open(0, make)
    other.check()
    os._exit(0 if other is not mine and bytes(other.view[:]) == b"good day" else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.usefixtures("forked_programs")
def test_a_forked_child_opens_its_own_maps(path: Path) -> None:
    subprocess.run([sys.executable, "-c", FORKING, str(path)], check=True, timeout=60)


def test_maps_of_closed_files_are_kept_where_asked(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / str(number)).write_bytes(b"%d" % number)
    files = OpenFiles(1, keeps_maps=True)
    first = weakref.ref(files.open(0, partial(opened, tmp_path / "0")))
    for number in range(1, 4):
        files.open(number, partial(opened, tmp_path / str(number)))
    file = first()
    assert (file is not None, len(files)) == (True, 1)
    assert file is not None
    file.check()
    file.advise(0, 1)
    assert bytes(file.view[0:1]) == b"0"
    (tmp_path / "0").write_bytes(b"7")
    with pytest.raises(IndexStale):
        file.check()
    del file
    files.close()
    assert first() is None
    files.open(5, partial(opened, tmp_path / "3"))
    last = weakref.ref(files.open(4, partial(opened, tmp_path / "2")))
    files.open(5, partial(opened, tmp_path / "3"))
    assert last() is not None
    assert pickle.loads(pickle.dumps(files)).keeps_maps
    del files
    assert last() is None
