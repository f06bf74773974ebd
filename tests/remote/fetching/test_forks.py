"""Forked, spawned and served children of a process that has, or has not, read an object store."""

from __future__ import annotations

import itertools
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.remote.fetching.range_server import range_server

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE = 8_000_000
SECONDS = 30


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with range_server(SIZE) as url:
        yield url


def count(url: str) -> int:
    with urllib.request.urlopen(f"{url}/count") as answer:
        return int(answer.read())


def run_case(url: str, folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.remote.fetching.fork_case", url, str(SIZE), *words],
        env={"PATH": "", "SEEKABLE_REMOTE_DIR": str(folder)} | environment,
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.parametrize("place", ["cached", "missing"])
def test_a_forked_child_reads_what_its_parent_could(url: str, tmp_path: Path, place: str) -> None:
    before = count(url)
    case = run_case(url, tmp_path, "used", "fork", place)
    assert (case.stdout, case.stderr, case.returncode) == ("(True, True) 0 True\n", "", 0)
    assert count(url) - before == {"cached": 3, "missing": 5}[place]


MATRIX = list(itertools.product(["used", "unused"], ["fork", "forkserver", "spawn"], ["cached", "missing"]))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("used", "method", "place"), MATRIX)
@pytest.mark.parametrize("most_bytes", ["", "0"], ids=["a cache", "no cache"])
def test_children_of_all_kinds_read(
    url: str, tmp_path: Path, used: str, method: str, place: str, most_bytes: str
) -> None:
    case = run_case(url, tmp_path, used, method, place, SEEKABLE_REMOTE_BYTES=most_bytes)
    assert (case.stdout, case.stderr, case.returncode) == ("(True, True) 0 True\n", "", 0)
