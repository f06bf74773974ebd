"""Runs the tests in as many processes as there are processors: ``make test`` and ``make nightly``.

Each process is a pytest of its own, with files of its own, so that each case is collected once. Files are
shared out by the seconds that they are known to take (tests/budget.toml). Arguments that are no options of
this program go to pytest; paths among them are run in place of all tests.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.frameworks import FRAMEWORKS, framework_of, marker_name
from tests.rooms import FLOW, room_of, tests_of, with_importers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ROOT = Path(__file__).resolve().parent.parent
BUDGET = ROOT / "tests" / "budget.toml"

MOST_PROCESSES = 8
REST = 0.1
"""The share of all tests that is left to the process that ends first: what files take is known roughly."""

WORTH_A_REST = 100
"""Seconds of tests from which on a rest is worth what it takes to start one more process."""

QUICK_FILE_SECONDS = 0.3
"""What a file is taken to need that is not in the budget: it lists those that need a second or more."""

OURS = "not frameworks and not exhaustive and not bench and not demo"
"""What ``make test`` runs. The rest is for ``make nightly``: docs/design/testing.md says why."""

# What these hold shares servers or a browser, of which a process starts one of each.
TOGETHER = ("tests/remote/", "tests/viewer/", "tests/dataset/test_hub")

PATIENCE = ("--timeout", "1800")
"""For a demo, which is one fixture of its tests."""

FOR_EVERY_ROOM = ("conftest.py", "pyproject.toml", "Makefile")
_SUMMARY = re.compile(r"(\d+) (passed|failed|error|skipped|xfailed)")
_COUNTED_AS = {"error": "failed", "xfailed": "skipped"}
_NO_TESTS = 5
"""The exit status of pytest where no test was chosen."""


@dataclass(frozen=True, slots=True)
class Job:
    """One process of pytest."""

    name: str
    arguments: tuple[str, ...]


# -- which tests --


def test_files(folders: Iterable[str]) -> list[str]:
    """Return the test files in files and folders, relative to the root, in order."""
    found: set[Path] = set()
    for folder in folders:
        path = ROOT / folder
        found.update([path] if path.is_file() else path.rglob("test_*.py"))
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def of_the_house() -> list[str]:
    """Return the test files that belong to no room: they hold the whole house, and run with each room."""
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").glob("test_*.py"))


def targets_of_room(room: str) -> list[str]:
    """Return the tests of a room and of those that import it, by the list of tests/rooms.py."""
    folders = {f"tests/{folder}" for each in with_importers(room) for folder in tests_of(each)}
    return [*of_the_house(), *sorted(folder for folder in folders if (ROOT / folder).is_dir())]


def targets_of_changes(changed: Iterable[str]) -> list[str]:
    """Return the tests that changed files can make fail.

    A file of ``src`` is tested by its room and those that import it, a file of a folder of ``tests`` by that
    folder; what all tests read, by all.

    Args:
        changed: paths relative to the root.
    """
    targets: set[str] = set()
    for path in changed:
        parts = path.split("/")
        if path in FOR_EVERY_ROOM or (parts[0] == "tests" and len(parts) == 2 and path not in of_the_house()):
            return ["tests"]
        if parts[:2] == ["src", "seekable"]:
            room = room_of(".".join([*parts[1:-1], parts[-1].removesuffix(".py")]))
            if room not in FLOW:
                return ["tests"]
            targets.update(targets_of_room(room))
        elif parts[0] == "tests":
            targets.add("/".join(parts[:2]))
        elif parts[0] in {"docs", "README.md", "CHANGELOG.md"}:
            targets.update(["tests/test_docs.py", "tests/docs"])
    return sorted(target for target in targets if (ROOT / target).exists())


def changed_files() -> list[str]:
    """Return the files that differ from the branch main, or that git does not know."""
    asked = (["diff", "--name-only", "main"], ["ls-files", "--others", "--exclude-standard"])
    return sorted({line for arguments in asked for line in _git(*arguments).splitlines()})


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def without_marked(files: Iterable[str]) -> list[str]:
    """Return the files that ``make test`` runs: pytest imports each file that it is given, and asks later.

    What the others import may not be installed.
    """
    return [file for file in files if marker_name(ROOT / file) is None]


# -- in which processes --


def shares(files: Sequence[str], count: int, seconds: dict[str, float]) -> list[list[str]]:
    """Share files out to processes so that these end about together, and return the files of each.

    What must be in one process is one unit; the unit that takes longest is given away first, always to the
    process that has the least. Of many tests a last, smaller part is a rest for whoever ends first. Pure.

    Args:
        files: test files.
        count: the number of processes.
        seconds: how long files take that are not quick.
    """
    units: dict[str, list[str]] = {}
    for file in files:
        together = next((prefix for prefix in TOGETHER if file.startswith(prefix)), file)
        units.setdefault(together, []).append(file)
    weights = {
        unit: sum(seconds.get(file, QUICK_FILE_SECONDS) for file in some) for unit, some in units.items()
    }
    total = sum(weights.values())
    loads = [0.0] * count
    if count > 1 and total >= WORTH_A_REST:
        loads.append(total * (1 - REST) / count - total * REST)
    parts = [list[str]() for _ in loads]
    for unit in sorted(units, key=lambda unit: (-weights[unit], unit)):
        least = loads.index(min(loads))
        loads[least] += weights[unit]
        parts[least] += units[unit]
    return [sorted(part) for part in parts if part]


def known_seconds() -> dict[str, float]:
    """Return how many seconds files take, as tests/budget.toml says."""
    found: dict[str, float] = tomllib.loads(BUDGET.read_text(encoding="utf-8"))["files"]
    return found


def nightly_jobs() -> list[Job]:
    """Return all tests as processes: ours by folder, those of each framework, demos and benchmarks."""
    ours = "not frameworks and not bench and not demo"
    houses = [*of_the_house(), *(folder.as_posix() for folder in _folders_of_tests())]
    jobs = [Job(target, ("-m", ours, target)) for target in houses]
    jobs += [
        Job(name, ("-m", f"frameworks(name='{name}')", *_files_with_framework(name))) for name in FRAMEWORKS
    ]
    jobs += [Job(file, (*PATIENCE, file)) for file in test_files(["tests/examples", "tests/benchmarks"])]
    return jobs


def _folders_of_tests() -> list[Path]:
    folders = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").iterdir() if path.is_dir())
    return [
        path for path in folders if test_files([str(path)]) and path.name not in {"examples", "benchmarks"}
    ]


def _files_with_framework(name: str) -> list[str]:
    """Return the files that may have tests of a framework: a name in them is enough, markers decide."""
    return [
        file
        for file in test_files(["tests"])
        if framework_of(ROOT / file) == name
        or f'frameworks(name="{name}")' in (text := (ROOT / file).read_text(encoding="utf-8"))
        or "frameworks(name=framework)" in text
        or "frameworks(name=peer.framework)" in text
    ]


# -- run them --


def run_all(jobs: Sequence[Job], *, at_once: int, pytest_arguments: Sequence[str]) -> int:
    """Run jobs, some at a time, print one line for all of them at the end, and return the exit status."""
    started = time.monotonic()
    printing = threading.Lock()
    with ThreadPoolExecutor(at_once) as pool:
        results = list(pool.map(lambda job: _run(job, pytest_arguments, printing), jobs))
    counts = sum(results, Counter[str]())
    failed = [job.name for job, result in zip(jobs, results, strict=True) if result["failed"]]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    sys.stdout.write(
        f"{time.monotonic() - started:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of processor time\n"
        + (f"failed: {', '.join(failed)}\n" if failed else "")
        + f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped\n"
    )
    return 1 if failed or not counts["passed"] else 0


def held_back(lines: Iterable[str], show: Callable[[str], None]) -> list[str]:
    """Show the lines of pytest that tell of a file as they come; return the others: its head and its end."""
    held: list[str] = []
    has_begun = has_ended = False
    for line in lines:
        if line.startswith("tests/") and not has_ended:
            has_begun = True
            show(line)
        else:
            has_ended = has_ended or (has_begun and line.startswith("="))
            held.append(line)
    return held


def _show(printing: threading.Lock, line: str) -> None:
    with printing:
        sys.stdout.write(line)
        sys.stdout.flush()


def _run(job: Job, pytest_arguments: Sequence[str], printing: threading.Lock) -> Counter[str]:
    """Run one job, and return its counts. Files are shown as they end, failures and summary at the end."""
    started = time.monotonic()
    command = [sys.executable, "-m", "pytest", *pytest_arguments, *job.arguments]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        held = held_back(process.stdout, partial(_show, printing))
    counts = Counter[str]()
    for number, word in _SUMMARY.findall(held[-1] if held else ""):
        counts[_COUNTED_AS.get(word, word)] += int(number)
    with printing:
        sys.stdout.write("".join(held))
        if process.returncode not in {0, _NO_TESTS} and not counts["failed"]:
            counts["failed"] = 1
            sys.stdout.write(f"{job.name} ended with status {process.returncode}, before its tests did\n")
        sys.stdout.write(f"{job.name}: {time.monotonic() - started:.0f} s\n")
        sys.stdout.flush()
    return counts


def main(arguments: Sequence[str]) -> int:
    """Run the tests that the command line names, and return the exit status."""
    parser = argparse.ArgumentParser(prog="make test", description=__doc__, allow_abbrev=False)
    parser.add_argument("--room", choices=FLOW, help="a room of src/seekable, and those that import it")
    parser.add_argument("--changed", action="store_true", help="the rooms that differ from main")
    parser.add_argument("--nightly", action="store_true", help="all there is")
    parser.add_argument("--processes", type=int, default=min(os.cpu_count() or 1, MOST_PROCESSES))
    options, rest = parser.parse_known_args(arguments)
    # A shell starts what it runs in the background without SIGINT, and tests interrupt what they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if options.nightly:
        os.environ["SEEKABLE_TESTS"] = "all"
        seed = os.environ.setdefault("SEEKABLE_SEED", str(random.SystemRandom().randrange(2**32)))
        sys.stdout.write(f"seed {seed}: SEEKABLE_SEED={seed} make nightly repeats it\n")
        return run_all(nightly_jobs(), at_once=options.processes, pytest_arguments=rest)
    named = [each for each in rest if (ROOT / each.partition("::")[0]).exists()]
    rest = [each for each in rest if each not in named]
    is_ours = "-m" not in rest
    if is_ours:
        rest = ["-m", OURS, *rest]
    if options.room:
        named = targets_of_room(options.room)
    if options.changed and not (named := targets_of_changes(changed_files())):
        sys.stdout.write("nothing that is tested differs from main\n")
        return 0
    files = test_files(each.partition("::")[0] for each in named or ["tests"])
    if len(files) == 1:  # without a pipe, for a debugger
        return subprocess.run(
            [sys.executable, "-m", "pytest", *rest, *named], cwd=ROOT, check=False
        ).returncode
    parts = shares(without_marked(files) if is_ours else files, options.processes, known_seconds())
    jobs = [Job(f"process {number}", tuple(part)) for number, part in enumerate(parts, start=1)]
    return run_all(jobs, at_once=options.processes, pytest_arguments=rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
