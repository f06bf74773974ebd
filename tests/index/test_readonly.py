"""Data in a folder that the user cannot write; as root, these tests act as somebody else."""

from __future__ import annotations

import importlib
import json
import logging
import os
import pkgutil
import shutil
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.index.corpus import check, fill, index_files, open_data, write
from tests.killing import Killer
from tests.parallel.executors import Inline

import seekable.formats
import seekable.index
import seekable.parallel
import seekable.remote
import seekable.storage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.parallel.progress import Progress


def act_as_nobody(script: str, data: Path, cache: Path, printed: Path) -> None:
    """Run a script as a user who may write nothing but the cache folder, if this user is root."""
    # All modules are imported before the rights are given up: the repository, its environment and the files
    # of the interpreter may be readable for root alone.
    for room in (seekable.formats, seekable.index, seekable.parallel, seekable.remote, seekable.storage):
        for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
            importlib.import_module(module.name)
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder))
        check(open_data(Path(folder)))
    sys.stdout = (printed / "stdout").open("w")
    sys.stderr = (printed / "stderr").open("w")
    os.environ["XDG_CACHE_HOME"] = str(cache)
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    told: list[Progress] = []
    exec(textwrap.dedent(script), {**globals(), "Inline": Inline, "data": data, "told": told})
    sys.stdout.flush()


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that others may read, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    (folder / "cache").mkdir()
    (folder / "cache").chmod(0o777)
    fill(folder / "data")
    yield folder
    (folder / "data").chmod(0o755)
    if (folder / "data" / ".seekable").exists():
        (folder / "data" / ".seekable").chmod(0o755)
    shutil.rmtree(folder)


@dataclass(frozen=True)
class Printed:
    stdout: str
    stderr: str


class AsNobody:
    """Runs scripts as a user who cannot write the data, in forks of one process."""

    def __init__(self, killer: Killer) -> None:
        self._killer = killer

    def __call__(
        self, script: str, folder: Path, *, cache: Path | None = None, index_mode: int = 0o555
    ) -> Printed:
        data, printed = folder / "data", folder / "printed"
        data.chmod(0o555)
        if (data / ".seekable").exists():
            (data / ".seekable").chmod(index_mode)
        printed.mkdir(exist_ok=True)
        code = self._killer.run(act_as_nobody, script, data, cache or folder / "cache", printed)
        found = Printed((printed / "stdout").read_text(), (printed / "stderr").read_text())
        assert code == 0, found.stderr
        return found


@pytest.fixture(scope="module")
def as_nobody() -> Iterator[AsNobody]:
    with Killer() as killer:
        yield AsNobody(killer)


def test_the_index_goes_to_the_cache_folder_and_that_is_said_once(shared: Path, as_nobody: AsNobody) -> None:
    script = """
        check(open_data(data, progress=told.append))
        notices = [step.notice for step in told if step.notice]
        told.clear()
        check(open_data(data, progress=told.append))
        print(json.dumps([notices, len(told)]))
    """
    done = as_nobody(script, shared)
    cached = shared / "cache" / "seekable" / str(shared / "data").lstrip("/") / ".seekable"
    notice = f"{str(shared / 'data')!r} cannot be written: its index goes to {str(cached)!r}"
    assert json.loads(done.stdout) == [[notice], 0]
    assert done.stderr.count(notice) == 1
    assert (cached / "catalog.json").exists()
    assert not (shared / "data" / ".seekable").exists()


def test_a_complete_index_of_somebody_else_is_used(shared: Path, as_nobody: AsNobody) -> None:
    open_data(shared / "data")
    script = """
        check(open_data(data, progress=told.append))
        check(open_data(data / "part-1.jsonl", progress=told.append))
        print(len(told))
    """
    assert as_nobody(script, shared).stdout == "0\n"
    assert not list((shared / "cache").iterdir())


def test_an_incomplete_index_of_somebody_else_is_left_alone(shared: Path, as_nobody: AsNobody) -> None:
    open_data(shared / "data")
    write(shared / "data" / "part-9.jsonl", b"1\n")
    script = """
        check(open_data(data, progress=told.append))
        print(told[-1].files)
    """
    assert as_nobody(script, shared).stdout == "4\n"


def test_what_was_indexed_right_after_it_was_written_is_compared_first(
    shared: Path, as_nobody: AsNobody
) -> None:
    path = shared / "data" / "part-1.jsonl"
    path.write_bytes(b"1\n2\n")
    status = path.stat()
    open_data(shared / "data")
    script = """
        check(open_data(data, progress=told.append))
        print(len(told))
    """
    assert as_nobody(script, shared).stdout == "0\n"
    path.write_bytes(b"123\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    script = """
        check(open_data(data, progress=told.append))
        files = open_data(data)
        check(files)
        print(told[-1].files, files.records.tolist())
    """
    assert as_nobody(script, shared).stdout == "3 [5, 1, 7]\n"


TELL = """
        from seekable.errors import AccessDenied
        try:
            open_data(data{arguments})
        except AccessDenied as error:
            assert isinstance(error, PermissionError)
            print(error)
"""


def test_where_nothing_can_be_written_the_way_out_is_told(shared: Path, as_nobody: AsNobody) -> None:
    told = as_nobody(TELL.format(arguments=""), shared, cache=shared / "data" / "no").stdout
    assert f"the index folder '{shared}/data/no/seekable{shared}/data/.seekable' cannot be made" in told
    assert "index_dir= or SEEKABLE_INDEX_DIR" in told


def test_an_index_folder_that_cannot_be_written_is_told_of_before_anything_is_scanned(
    shared: Path, as_nobody: AsNobody
) -> None:
    mirrored = shared / "mine" / str(shared).lstrip("/") / "data" / ".seekable"
    mirrored.mkdir(parents=True)
    script = TELL.format(arguments=", index_dir=data.parent / 'mine', progress=told.append")
    told = as_nobody(script + "        print(told)\n", shared).stdout
    assert f"the index folder {str(mirrored)!r} cannot be written" in told
    assert "index_dir= or SEEKABLE_INDEX_DIR" in told
    assert told.endswith("[]\n")


def test_a_lock_that_cannot_be_taken_is_told_of(shared: Path, as_nobody: AsNobody) -> None:
    index = shared / "data" / ".seekable"
    index.mkdir()
    (index / "lock").touch(mode=0o600)
    told = as_nobody(TELL.format(arguments=""), shared, index_mode=0o777).stdout
    assert f"cannot be written: {str(index / 'lock')!r}" in told


def test_a_stale_index_of_somebody_else_is_left_alone(shared: Path, as_nobody: AsNobody) -> None:
    open_data(shared / "data")
    before = index_files(shared / "data")
    write(shared / "data" / "part-1.jsonl", b"1\n2\n", seconds=1)
    script = """
        check(open_data(data, progress=told.append))
        print(told[-1].files, told[0].notice != "")
    """
    assert as_nobody(script, shared).stdout == "3 True\n"
    assert index_files(shared / "data") == before


@pytest.mark.parametrize(("file_mode", "index_mode"), [(0o600, 0o555), (0o644, 0o700)])
def test_an_index_of_somebody_else_that_cannot_be_read_is_as_good_as_none(
    shared: Path, file_mode: int, index_mode: int, as_nobody: AsNobody
) -> None:
    open_data(shared / "data")
    for file in (shared / "data" / ".seekable").iterdir():
        file.chmod(file_mode)
    script = """
        check(open_data(data, progress=told.append))
        print(told[-1].files)
    """
    assert as_nobody(script, shared, index_mode=index_mode).stdout == "3\n"


def test_a_data_file_that_cannot_be_read_is_told_of(shared: Path, as_nobody: AsNobody) -> None:
    path = shared / "data" / "part-1.jsonl"
    path.chmod(0o600)
    told = as_nobody(TELL.format(arguments=""), shared).stdout
    assert f"{str(path)!r} cannot be read by this user (uid " in told
    assert "it has mode -rw-------" in told
    script = TELL.format(arguments=", executor=Inline()")
    assert "cannot be read by this user" in as_nobody(script, shared).stdout


def test_a_data_file_that_cannot_be_read_any_more_is_told_of(shared: Path, as_nobody: AsNobody) -> None:
    open_data(shared / "data")
    (shared / "data" / "part-1.jsonl").chmod(0o600)
    script = """
        from seekable.errors import AccessDenied
        files = open_data(data)
        print(files.bytes_of(0, 0).nbytes)
        try:
            files.bytes_of(1, 0)
        except AccessDenied as error:
            print(error)
    """
    told = as_nobody(script, shared).stdout
    assert told.startswith("22\n")
    assert "part-1.jsonl' cannot be read by this user" in told


@pytest.mark.parametrize("asked", ["", "/part-0.jsonl", "/*.jsonl"])
def test_a_folder_that_cannot_be_searched_is_told_of(shared: Path, asked: str, as_nobody: AsNobody) -> None:
    (shared / "data" / "secret").mkdir(mode=0o700)
    fill(shared / "data" / "secret")
    script = f"""
        from seekable.errors import AccessDenied
        try:
            open_data(str(data) + "/secret{asked}")
        except AccessDenied as error:
            print(error)
    """
    told = as_nobody(script, shared).stdout
    assert "secret" in told
    assert "cannot be read by this user" in told


READ_ONLY_MOUNT = """
set -e
mount --bind "$1/data" "$1/data"
mount -o remount,bind,ro "$1/data"
exec "$2" -c "$3" "$1/data"
"""

ON_READ_ONLY_MOUNT = """
import sys
from pathlib import Path
from tests.index.corpus import check, open_data
told = []
check(open_data(Path(sys.argv[1]), progress=told.append))
print([step.files for step in told][-1:], sum(bool(step.notice) for step in told))
"""


def test_root_too_cannot_write_to_a_read_only_mount(shared: Path) -> None:
    fill(shared / "data")
    environment = {**os.environ, "XDG_CACHE_HOME": str(shared / "cache")}
    for expected in ("[3] 1\n", "[] 0\n"):
        mounted = ["unshare", "--mount", "sh", "-c", READ_ONLY_MOUNT, "sh"]
        done = subprocess.run(
            [*mounted, str(shared), sys.executable, ON_READ_ONLY_MOUNT],
            cwd=Path(__file__).parents[2],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if "unshare" in done.stderr or "mount:" in done.stderr:
            pytest.skip(f"this user may not mount: {done.stderr.strip()}")
        assert done.stdout == expected, done.stderr
    assert not (shared / "data" / ".seekable").exists()


def test_an_index_that_several_users_may_write_is_added_to_by_each(shared: Path, as_nobody: AsNobody) -> None:
    index = shared / "data" / ".seekable"
    index.mkdir()
    index.chmod(0o777)
    open_data(shared / "data")
    write(shared / "data" / "part-9.jsonl", b"1\n")
    script = """
        check(open_data(data, progress=told.append))
        print(told[-1].files)
    """
    assert as_nobody(script, shared, index_mode=0o777).stdout == "1\n"
    write(shared / "data" / "part-9.jsonl", b"1\n2\n")
    check(open_data(shared / "data"))
    assert (index / "lock").stat().st_mode & 0o777 == 0o666
