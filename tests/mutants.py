"""Plants faults, one after the other, and runs the tests of the room of each: ``make mutants``.

A mutant is one law of the design, broken in one room by a fault that somebody could make. Each is planted in
a copy of the project, never in the project itself, and a test of its room must find it. Where none does, that
is a hole in the tests. This is also the plugin of pytest by which such a run tells what failed first.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.rooms import room_of, tests_of
from tests.run import OURS, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_LEFT_OUT = shutil.ignore_patterns(".*", "*-pytest-*", "_build")
_TEST_SECONDS = 120
"""What a test may take: one that hangs has found its mutant."""
_ROOM_SECONDS = 1200
_NOTED = "SEEKABLE_MUTANTS_NOTED"
"""The variable with the path of the file in which a run notes the test that failed first."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault, and the tests that have to find it."""

    name: str
    """What is wrong."""

    law: int
    """The law that it breaks, by its number in the design."""

    path: str
    """The file, relative to ``src/seekable``."""

    old: str
    """The text that is replaced, which the file has once."""

    new: str

    tests: tuple[str, ...]
    """The files and folders below ``tests`` that are run before the other tests of the room."""

    @property
    def room(self) -> str:
        """The room of the file."""
        return room_of("seekable." + self.path.removesuffix(".py").replace("/", "."))


@dataclass(frozen=True, slots=True)
class Found:
    """What became of a mutant."""

    mutant: Mutant
    test: str
    """The test that failed first; empty if none did."""
    seconds: float
    output: str = ""
    """The end of what pytest printed, where no test failed."""


MUTANTS = (
    Mutant(
        *("the inverse of a permutation is off by one where a round ends at 0", 5, "order/permutation.py"),
        *("            if right < 0:\n", "            if right <= 0:\n"),
        tests=("order/test_permutation.py",),
    ),
    Mutant(
        *("the key of an order is another one in each process", 1, "order/keys.py"),
        *('xxhash.xxh3_64_intdigest(f"seekable.{kind}".encode())', 'hash(f"seekable.{kind}") & MASK'),
        tests=("order/test_golden.py",),
    ),
    Mutant(
        *("a segment of a schedule forgets one draw of those before it", 5, "order/mixture.py"),
        *("drawn = start - last.start\n", "drawn = start - last.start - 1\n"),
        tests=("order/test_mixture.py",),
    ),
    Mutant(
        *("the arguments of a partial are left out of a fingerprint", 6, "state/functions.py"),
        *('return {**described, "arguments": arguments}', "return described"),
        tests=("state/test_functions.py",),
    ),
    Mutant(
        *(
            "a stretch of a compressed file is taken with any content of its size",
            6,
            "storage/seek_points.py",
        ),
        *("if xxhash.xxh3_64_intdigest(content) == point.digest:", "if len(content) == size:"),
        tests=("storage/test_seek_points.py",),
    ),
    Mutant(
        *("the size of a data file is not compared", 6, "storage/mapped.py"),
        "if status.st_size != size or status.st_mtime_ns != mtime_ns:",
        "if status.st_mtime_ns != mtime_ns:",
        tests=("storage/test_mapped.py",),
    ),
    Mutant(
        *("a file is copied to its name, and not renamed", 7, "storage/files.py"),
        "    os.replace(temporary, path)\n",
        '    with open(temporary, "rb") as made, open(path, "wb") as file:\n'
        "        file.write(made.read())\n",
        tests=("storage/test_atomic.py",),
    ),
    Mutant(
        *("a file gets its name before it is on disk", 7, "storage/files.py"),
        *("            os.fsync(file.fileno())\n        put_in_place", "        put_in_place"),
        tests=("storage/test_atomic.py",),
    ),
    Mutant(
        *("the content of an object is not compared by its etag", 6, "remote/stores/obstore_store.py"),
        "same = found.identity == pin.identity or _same_etag(found.etag, pin.etag)",
        "same = found.size == pin.size",
        tests=("remote/stores", "remote/reading"),
    ),
    Mutant(
        *("a merged request ends with its last range, not the farthest", 10, "remote/fetching/wants.py"),
        *("ends = np.maximum.reduceat(stops, heads)", "ends = stops[edges[1:] - 1]"),
        tests=("remote/fetching/test_merging.py",),
    ),
    Mutant(
        *("the ledger's limit of the disk cache is ignored", 9, "remote/cache/disk_room.py"),
        *("return (lines.used or 0) + size <= self.limit(lines) and size <= free", "return size <= free"),
        tests=("remote/cache",),
    ),
    Mutant(
        *("one number is lost where workers take over", 10, "parallel/map_ranges.py"),
        "return start, serialized(function, way_out=WAY_OUT)",
        "return start + 1, serialized(function, way_out=WAY_OUT)",
        tests=("parallel/test_map_ranges.py",),
    ),
    Mutant(
        *("the catalog of an index names a table that is not written yet", 7, "index/build/commit.py"),
        "    write_atomically(os.path.join(folder, table_name(data)), data)\n",
        "    write_atomically(os.path.join(folder, CATALOG), encode_catalog(entries, table=data))\n"
        "    write_atomically(os.path.join(folder, table_name(data)), data)\n",
        tests=("index/test_changes.py",),
    ),
    Mutant(
        *(
            "an object of an indexed archive begins a byte too early",
            10,
            "formats/kaldi/tables/key_tables.py",
        ),
        *('{start + found.end()}"', '{start + found.end() - 1}"'),
        tests=("kaldi/test_random_access.py",),
    ),
    Mutant(
        *("a torn last line of a script is appended to", 6, "formats/kaldi/tables/repair.py"),
        *(
            "line_key(text) else None\n        if line is None or",
            "line_key(text) else None\n        if line and",
        ),
        tests=("kaldi/test_repair.py",),
    ),
    Mutant(
        *("a forked process reads on in the stream of its parent", 11, "formats/kaldi/tables/archive.py"),
        *("        if not self.can_seek:\n            self._check_process()\n", ""),
        tests=("kaldi/test_sequential.py",),
    ),
    Mutant(
        *(
            "EOS is written one token too early where there is BOS",
            10,
            "formats/tokens/tokenizing/encoding.py",
        ),
        *("made[ends + added - 1] = after", "made[ends + added - extra] = after"),
        tests=("tokens/test_encoding.py",),
    ),
    Mutant(
        *("an array file may hold pickles", 8, "formats/tar/field_values.py"),
        "return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)",
        "return np.lib.format.read_array(io.BytesIO(data), allow_pickle=True)",
        tests=("formats/fields/test_field_decoder.py",),
    ),
    Mutant(
        *("a column with nulls gives a neighbour's value", 10, "formats/tables/parquet/point_read.py"),
        *("(np.cumsum(there) - 1)[places[valid]]", "(np.cumsum(there) - 1)[places[valid] - 1]"),
        tests=("formats/parquet/test_point_read.py",),
    ),
    Mutant(
        *("the checksum of a tar header is not compared", 6, "formats/tar/header.py"),
        *("np.flatnonzero(~usual | (digits @ _OCTAL_WEIGHTS != sums))", "np.flatnonzero(~usual)"),
        tests=("formats/tar/test_damage.py",),
    ),
    Mutant(
        *("the last key of the right side of a join is lost", 6, "nodes/join.py"),
        *('order = np.argsort(together, kind="stable")', 'order = np.argsort(together, kind="stable")[:-1]'),
        tests=("dataset/test_join.py",),
    ),
    Mutant(
        *("rows that were saved are taken though the file has others now", 6, "nodes/saved_rows.py"),
        *("        if found != self.digest:", "        if len(found) != len(self.digest):"),
        tests=("dataset/test_saved.py",),
    ),
    Mutant(
        *("the seed of a shuffle is left out of the fingerprint", 6, "nodes/shuffle.py"),
        'return {"seed": self.seed, **({"fixed": True} if self.fixed else {})}',
        'return {"fixed": True} if self.fixed else {}',
        tests=("dataset/test_fingerprint.py",),
    ),
    Mutant(
        *("the labels of a packed sample are its tokens", 6, "packing/nodes/sample_arrays.py"),
        *("read[TOKENS][:, 1:].copy()", "read[TOKENS][:, :-1].copy()"),
        tests=("nodes/test_pack.py",),
    ),
    Mutant(
        *("a file gets its name before those that belong to it", 7, "writing/target.py"),
        *("in reversed(temporary.items()):", "in temporary.items():"),
        tests=("dataset/test_write_shar.py",),
    ),
    Mutant(
        *("a state counts items that were read and not delivered", 2, "stream/lane.py"),
        "self._settle(self._behind if self._left is None else operator.length_hint(self._left))",
        "self._settle(self._behind)",
        tests=("stream/test_lane.py",),
    ),
    Mutant(
        *("the last item of a buffer is not restored", 2, "stream/buffer.py"),
        *("self._tokens = list(tokens)  #", "self._tokens = list(tokens)[:-1]  #"),
        tests=("stream/test_lane.py",),
    ),
    Mutant(
        *("the rest of the document that a sequence ends in is lost", 2, "stream/pack.py"),
        *("                    _hold(lane, token, document, start)\n", ""),
        tests=("stream/test_closed_world.py",),
    ),
    Mutant(
        *("a restored stream reads again what it had read", 3, "stream/from_dataset.py"),
        "        self._reads = source.reads(lane.number, done)\n",
        "        self._reads = source.reads(lane.number, done)\n"
        "        read = 0\n"
        "        for positions, *_ in source.reads(lane.number, 0) if done else ():\n"
        "            if (read := read + len(positions)) >= done:\n"
        "                break\n",
        tests=("stream/test_no_replay.py",),
    ),
    Mutant(
        *("the first row of a dataset has no negative number", 10, "dataset/position.py"),
        *("if size is not None and -size <= number < 0:", "if size is not None and -size < number < 0:"),
        tests=("dataset/test_indexing.py",),
    ),
    Mutant(
        *("a resume by rows counts one delivered row too few", 2, "resume/consumed.py"),
        *("Remaining((), position), nothing", "Remaining((), max(position - 1, 0)), nothing"),
        tests=("resume/test_datasets.py",),
    ),
    Mutant(
        *("a rank takes rows of another where an epoch begins within a batch", 4, "loader/steps.py"),
        *("cursor.position + (rank - cursor.position) % world_size, last", "cursor.position + rank, last"),
        tests=("loader/test_ranks.py",),
    ),
    Mutant(
        *("the state of a lane is taken before its items are", 2, "loader/lane_batches.py"),
        "        for lane in touched:\n"
        "            for each in self._changes:\n"
        "                each.change(self._iterators[lane], first)\n"
        "            fresh += self._fill(lane, slots[lane], items)\n"
        "        items.sort(key=itemgetter(0))\n"
        "        stages = {lane: self._iterators[lane].deltas() for lane in touched}\n",
        "        stages = {lane: self._iterators[lane].deltas() for lane in touched}\n"
        "        for lane in touched:\n"
        "            for each in self._changes:\n"
        "                each.change(self._iterators[lane], first)\n"
        "            fresh += self._fill(lane, slots[lane], items)\n"
        "        items.sort(key=itemgetter(0))\n",
        tests=("loader/streams/test_lanes.py",),
    ),
    Mutant(
        *("a lane of a rank is in no worker", 4, "loader/batch_sources.py"),
        *("lanes[number::workers] for number", "lanes[number:-1:workers] for number"),
        tests=("loader/streams/test_lanes.py",),
    ),
    Mutant(
        *("after a resume the batches of workers come out of turn", 2, "loader/batch_sources.py"),
        *("first = cursor.step % len(results)", "first = cursor.epoch % len(results)"),
        tests=("loader/test_workers.py",),
    ),
    Mutant(
        *("an iterator goes on in a forked process", 11, "loader/iteration.py"),
        *("if os.getpid() != self._process:", "if os.getppid() == os.getpid():"),
        tests=("loader/test_processes.py",),
    ),
    Mutant(
        *("the last row of all is not searched", 6, "viewer/facts/reading.py"),
        "yield np.arange(first, min(first + PIECE_ROWS, stop))",
        "yield np.arange(first, min(first + PIECE_ROWS, stop - 1))",
        tests=("facts/test_search.py",),
    ),
    Mutant(
        *("the page of a step shows the row before", 10, "viewer/pages/step.py"),
        *("record, owner = self._records[at]\n", "record, owner = self._records[at - 1]\n"),
        tests=("viewer/test_pages.py",),
    ),
    Mutant(
        *("the viewer answers under any name of the machine", 6, "viewer/server.py"),
        'if _host_of(headers.get(b"host", "")) not in self._hosts:',
        'if not _host_of(headers.get(b"host", "")):',
        tests=("viewer/test_guard.py",),
    ),
    Mutant(
        *("verify exits with 0 where data is damaged", 6, "cli/verify.py"),
        *("raise typer.Exit(ExitCode.MISMATCH)", "raise typer.Exit(ExitCode.OK)"),
        tests=("cli/test_verify.py",),
    ),
    Mutant(
        *("a change of a run holds one step too late", 2, "loader/batches.py"),
        *("sum(entry.at <= step for entry", "sum(entry.at < step for entry"),
        tests=("loader/test_steer.py", "loader/test_exclude.py"),
    ),
    Mutant(
        *("a state forgets the changes that have not come yet", 2, "state/journal.py"),
        *(
            "coming = {entry.place: entry for entry in saved if entry.at >= step}",
            "coming = {entry.place: entry for entry in saved if entry.at < 0}",
        ),
        tests=("loader/test_journal_closed_world.py",),
    ),
    Mutant(
        *("a run that was changed on one rank alone is saved", 6, "state/journal.py"),
        *("    if journal != others:\n", "    if not isinstance(others, type(journal)):\n"),
        tests=("loader/test_steer.py",),
    ),
    Mutant(
        *("a stream heeds a change at the slots of a run before", 2, "loader/lane_batches.py"),
        *("            position = cursor.position + steps", "            position = steps"),
        tests=("loader/test_journal_closed_world.py", "loader/streams"),
    ),
)


# -- which of them, and what is run: pure --


def chosen(mutants: Iterable[Mutant], only: Sequence[str]) -> list[Mutant]:
    """Return the mutants of which the room is named, or a part of the name; all if nothing is named."""
    return [each for each in mutants if not only or any(w == each.room or w in each.name for w in only)]


def targets(mutant: Mutant) -> list[list[str]]:
    """Return what pytest is given, call by call: the likely files, and then all tests of the room."""
    likely = [f"tests/{each}" for each in mutant.tests]
    folders = [f"tests/{each}" for each in tests_of(mutant.room)]
    return [likely, [folder for folder in folders if (ROOT / folder).is_dir()]]


def replaced(text: str, mutant: Mutant) -> str:
    """Return the text of a file with a mutant in it.

    Raises:
        ValueError: the text that it replaces is not there once.
    """
    count = text.count(mutant.old)
    if count != 1 or mutant.old == mutant.new:
        message = f"{mutant.name!r} is stale: {mutant.path} has its text {count} times. Plant it anew"
        raise ValueError(message)
    return text.replace(mutant.old, mutant.new)


def line_of(found: Found) -> str:
    """Return what is printed of a mutant."""
    mutant = found.mutant
    what = found.test or "NOT FOUND"
    return f"law {mutant.law:2} | {mutant.room} | {mutant.name} | {what} | {found.seconds:.0f} s"


# -- the plugin --


def pytest_configure() -> None:
    """Refuse to run the tests with another package than that of the copy."""
    spec = importlib.util.find_spec("seekable")
    if _NOTED in os.environ and (spec is None or not Path(str(spec.origin)).is_relative_to(ROOT)):
        message = f"seekable is imported from {spec and spec.origin}, and not from {ROOT}"
        raise pytest.UsageError(message)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note the first test that fails."""
    _note(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a file that cannot be read."""
    _note(report)


def _note(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.failed and _NOTED in os.environ:
        with contextlib.suppress(FileExistsError), open(os.environ[_NOTED], "x", encoding="utf-8") as file:
            file.write(report.nodeid)


# -- the copies --


class Copy:
    """A copy of the project, in which one process at a time plants mutants."""

    def __init__(self, folder: Path) -> None:
        """Copy the project, with the byte code that there is of it."""
        self.folder = folder
        shutil.copytree(ROOT, folder, ignore=_LEFT_OUT)
        self._time = time.time() + 1_000_000
        """The modification time of the file that was changed last; no two times are equal."""

    @contextlib.contextmanager
    def planted(self, mutant: Mutant) -> Iterator[None]:
        """Have a mutant in the copy."""
        path = self.folder / "src" / "seekable" / mutant.path
        whole = path.read_text(encoding="utf-8")
        self._write(path, replaced(whole, mutant))
        try:
            yield
        finally:
            self._write(path, whole)

    def _write(self, path: Path, text: str) -> None:
        """Write a file, of which no byte code of before is taken: it is removed, and was of another time."""
        path.write_text(text, encoding="utf-8")
        self._time += 10
        os.utime(path, (self._time, self._time))
        for cached in path.parent.glob(f"__pycache__/{path.stem}.*"):
            cached.unlink()

    def run(self, arguments: Sequence[str]) -> tuple[int, str, str]:
        """Run tests to the first that fails; return the exit status, that test and the end of the output."""
        noted = self.folder.with_suffix(".noted")
        noted.unlink(missing_ok=True)
        # This module imports `tests`, before pytest can rewrite what is in that: it has no asserts.
        options = ["-p", "tests.mutants", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        options += ["-p", "no:cacheprovider", "-q", f"--timeout={_TEST_SECONDS}"]
        path = os.pathsep.join([str(self.folder / "src"), str(self.folder)])
        with subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, "-x", "-m", OURS, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": path, _NOTED: str(noted)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=_ROOM_SECONDS)
            except subprocess.TimeoutExpired:
                output = f"the tests took more than {_ROOM_SECONDS} s"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        test = noted.read_text(encoding="utf-8") if noted.exists() else ""
        return process.returncode, test, output[-2000:]


def looked_for(mutant: Mutant, copy: Copy) -> Found:
    """Plant a mutant, run the tests of its room until one fails, and return what became of it."""
    began = time.monotonic()
    with copy.planted(mutant):
        for some in targets(mutant):
            _, test, output = copy.run(some)
            if test:
                return Found(mutant, test, time.monotonic() - began)
    return Found(mutant, "", time.monotonic() - began, output)


def without_mutants(found: Iterable[Found], copy: Copy) -> str:
    """Return what fails of the tests that found mutants where there is none: nothing, or the output."""
    tests = sorted({each.test for each in found if each.test})
    status, _, output = copy.run(tests) if tests else (0, "", "")
    return output if status else ""


# -- the program --


def run_all(mutants: Sequence[Mutant], *, at_once: int) -> int:
    """Look for mutants, some at a time, print a line for each, and return the exit status."""
    began, printing = time.monotonic(), threading.Lock()
    with tempfile.TemporaryDirectory(prefix="seekable-mutants-") as folder:
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for number in range(at_once):
            copies.put(Copy(Path(folder, str(number))))

        def one(mutant: Mutant) -> Found:
            copy = copies.get()
            try:
                found = looked_for(mutant, copy)
            finally:
                copies.put(copy)
            with printing:
                sys.stdout.write(f"{line_of(found)}\n{found.output}")
                sys.stdout.flush()
            return found

        with ThreadPoolExecutor(at_once) as pool:
            results = list(pool.map(one, mutants))
        wrong = without_mutants(results, copies.get())
    missed = sum(not each.test for each in results)
    if wrong:
        sys.stdout.write(f"without a mutant these tests must pass, and one fails:\n{wrong}")
    sys.stdout.write(f"{len(results) - missed} found, {missed} not found; {time.monotonic() - began:.0f} s\n")
    return 1 if missed or wrong or not results else 0


def main(arguments: Sequence[str]) -> int:
    """Plant the mutants that the command line names, and return the exit status."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__, allow_abbrev=False)
    parser.add_argument("--only", nargs="+", default=[], help="rooms, or parts of names")
    parser.add_argument("--list", action="store_true", help="print what would be planted")
    parser.add_argument("--processes", type=int, default=min(os.cpu_count() or 1, 2))
    options = parser.parse_args(arguments)
    mutants = chosen(MUTANTS, options.only)
    try:
        for each in mutants:
            replaced((ROOT / "src" / "seekable" / each.path).read_text(encoding="utf-8"), each)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if options.list:
        sys.stdout.writelines(f"law {one.law:2} | {one.room} | {one.name} | {one.path}\n" for one in mutants)
        return 0
    return run_all(mutants, at_once=options.processes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
