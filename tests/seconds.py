"""The processor seconds that tests take, by room and by test, held against a budget: ``make budget``.

This is a plugin of pytest that notes them, and a program that runs the tests of ``make test`` with it.
Machines differ by two, so all is in units: what a fixed loop takes, run by each process after its tests.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests import run

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

LOOPS = 5_000_000
"""How often the loop of one unit goes round; a processor of 2026 takes about a second."""

WORTH_LISTING = 1.0
"""Files that take so many units stand in the budget, so that processes end together."""

_FOLDER = "SEEKABLE_SECONDS"
COLLECTION = "collection"
_noted: dict[str, float] = {}
_last = [0.0]
"""The processor seconds at the last note."""

_scales: list[float] = []
"""The seconds of a unit at several moments: a processor is faster at one than at another."""

_TESTS_BETWEEN = 500

Units = dict[str, float]


# -- the plugin --


_TICKS = os.sysconf("SC_CLK_TCK")


def used() -> float:
    """Return the processor seconds of this process and of all its children, of those that live on too.

    A server, a browser, and an interpreter that forks live to the end of the run: what they do for a test
    counts as that test's.
    """
    return sum(os.times()[:4]) + sum(map(_used_by, _children_of("self")))


def _used_by(process: str) -> float:
    with contextlib.suppress(OSError):  # It ended meanwhile, and counts as one that has.
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        # The name, in brackets, may hold anything; the fields after it are numbered from 3.
        fields = status.rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / _TICKS + sum(map(_used_by, _children_of(process)))
    return 0.0


def _children_of(process: str) -> list[str]:
    found: list[str] = []
    folder = f"/proc/{process}/task"
    threads: list[str] = []
    with contextlib.suppress(OSError):
        threads = os.listdir(folder)
    for thread in threads:
        with contextlib.suppress(OSError):  # A thread may have ended meanwhile.
            found += Path(f"{folder}/{thread}/children").read_text(encoding="utf-8").split()
    return found


def unit() -> float:
    """Return the processor seconds that the loop of one unit takes now; a tenth of it is run."""
    started, total = time.process_time(), 0
    for number in range(LOOPS // 10):
        total += number * number & 7
    return 10 * (time.process_time() - started)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Note what it takes to find the tests, with all that was imported so far."""
    result = yield
    _note(COLLECTION)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note what a test takes, its fixtures included."""
    process = os.getpid()
    try:
        return (yield)
    finally:
        if os.getpid() == process:
            _note(item.nodeid)
            if len(_noted) % _TESTS_BETWEEN == 0:
                _scales.append(unit())
                _last[0] = used()


def _note(name: str) -> None:
    """Note what was used since the last note.

    Linux may leave out a child from the list of children while others end. Each moment is read once, so what
    one test then seems to save, the next one seems to take, and the sum of a room stays right.
    """
    now = used()
    _noted[name] = now - _last[0]
    _last[0] = now


def pytest_sessionfinish() -> None:
    """Write down what was noted."""
    _scales.append(unit())
    scale = sum(_scales) / len(_scales)
    noted = {name: seconds / scale for name, seconds in _noted.items()}
    path = os.path.join(os.environ[_FOLDER], f"{os.getpid()}.json")
    Path(path).write_text(json.dumps(noted), encoding="utf-8")


# -- the program --


def room_of(name: str) -> str:
    """Return the folder of tests that a test belongs to, or "house"."""
    parts = name.partition("::")[0].split("/")
    return parts[1] if len(parts) > 2 else "house"


def totals(noted: Mapping[str, float]) -> tuple[Units, Units, Units]:
    """Return the units by room, by file and by test, of which all cases are one. Pure."""
    rooms: Units = defaultdict(float)
    files: Units = defaultdict(float)
    tests: Units = defaultdict(float)
    for name, units in noted.items():
        if name == COLLECTION:
            rooms[COLLECTION] += units
            continue
        rooms[room_of(name)] += units
        files[name.partition("::")[0]] += units
        tests[name.partition("[")[0]] += units
    return rooms, files, tests


def dearest(units: Units, most: int | None = None) -> list[tuple[str, float]]:
    """Return names and their units, the dearest first. Pure."""
    return sorted(units.items(), key=lambda item: -item[1])[:most]


def over_budget(rooms: Mapping[str, float], budget: Mapping[str, float]) -> list[str]:
    """Return a line for each room that takes more than its budget, or has none. Pure."""
    return [
        f"{room} takes {units:.1f} units of {budget.get(room, 0)}"
        for room, units in rooms.items()
        if units > budget.get(room, 0)
    ]


def measured(arguments: Sequence[str]) -> tuple[int, dict[str, float]]:
    """Run the tests, and return the exit status and the units of each."""
    noted: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ[_FOLDER] = folder
        status = run.main(arguments)
        for path in Path(folder).iterdir():
            for name, units in json.loads(path.read_text(encoding="utf-8")).items():
                noted[name] = noted.get(name, 0) + units
    return status, noted


def main(arguments: Sequence[str]) -> int:
    """Run the tests, print what they take, and return 1 if one fails or a room is over its budget."""
    parser = argparse.ArgumentParser(prog="make budget", description=__doc__, allow_abbrev=False)
    parser.add_argument("--dearest", type=int, default=20, help="how many tests to list")
    parser.add_argument("--write", action="store_true", help="write down what files take now")
    options, rest = parser.parse_known_args(arguments)
    status, noted = measured(rest)
    rooms, files, tests = totals(noted)
    for room, units in dearest(rooms):
        sys.stdout.write(f"| {room} | {sum(room_of(name) == room for name in noted)} | {units:.1f} |\n")
    for test, units in dearest(tests, options.dearest):
        sys.stdout.write(f"{units:6.1f} {test}\n")
    if options.write:
        write_files(files)
    complaints = over_budget(rooms, tomllib.loads(run.BUDGET.read_text(encoding="utf-8"))["rooms"])
    sys.stdout.write("".join(f"{line}\n" for line in complaints))
    return status or bool(complaints)


def write_files(files: Mapping[str, float]) -> None:
    """Replace the list of files at the end of the budget."""
    head = run.BUDGET.read_text(encoding="utf-8").partition("[files]\n")[0]
    lines = [f'"{file}" = {units:.1f}\n' for file, units in sorted(files.items()) if units >= WORTH_LISTING]
    run.BUDGET.write_text(f"{head}[files]\n{''.join(lines)}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
