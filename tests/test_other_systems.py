"""Systems that are not Linux: the core works where only POSIX is there, and Windows is told what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.other_system import LACK, LACKING, work

ROOT = Path(__file__).resolve().parent.parent


def run_python(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run an interpreter in the root of the project, with more variables of the environment."""
    environment = {**os.environ, **variables}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.exhaustive
def test_the_core_does_the_same_work_without_what_only_linux_has(tmp_path: Path) -> None:
    for name in ("poorer", "here", "there"):
        (tmp_path / name).mkdir()
    (tmp_path / "poorer" / "sitecustomize.py").write_text(LACK)
    # Workers are interpreters too, and start with the same folder before all others.
    path = os.pathsep.join([str(tmp_path / "poorer"), str(ROOT / "src"), str(ROOT)])
    done = run_python("-m", "tests.other_system", str(tmp_path / "there"), PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("lacks") == [True]  # The workers had the poorer system as well.
    expected = json.loads(json.dumps(work(tmp_path / "here", processes=0)))
    assert expected.pop("lacks") == [False]
    assert found == expected
    assert found["network"] is False
    assert found["claimed"] is True


def test_what_is_taken_away_is_there(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(LACK)
    look = f"""
import importlib, os
assert not [name for module, names in {LACKING!r}.items() for name in names
            if hasattr(importlib.import_module(module), name)]
for path in ("/proc/self/mounts", b"/sys/fs/cgroup/memory.max"):
    try:
        os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        continue
    raise AssertionError(path)
"""
    done = run_python("-c", look, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    if sys.platform == "linux":
        assert {"posix_fadvise", "preadv", "sched_getaffinity"} <= set(dir(os))


def test_windows_is_told_where_it_runs_in_one_error(tmp_path: Path) -> None:
    """The modules that Windows lacks are hidden: nothing is imported before the error."""
    (tmp_path / "program.py").write_text(
        "import sys\n"
        "sys.platform = 'win32'\n"
        "for name in ('fcntl', 'resource', 'numpy', 'msgspec', 'xxhash', 'typer'):\n"
        "    sys.modules[name] = None\n"
        "import seekable\n"
    )
    done = run_python(str(tmp_path / "program.py"), PYTHONPATH=str(ROOT / "src"))
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last == "ImportError: seekable does not run on Windows itself: run it in WSL, on Linux or on macOS"
    assert done.stderr.count("Traceback") == 1
