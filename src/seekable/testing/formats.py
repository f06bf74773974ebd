"""The tests that every format must pass, as a class for pytest."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import cloudpickle
import numpy as np

from seekable.dataset.load import load_pipeline
from seekable.dataset.open import open as open_dataset
from seekable.errors import SeekableError, WrongType
from seekable.index.index_location import Index
from seekable.loader.loader import Loader
from seekable.nodes.node import node_of
from seekable.testing.one_answer import Refused, check
from seekable.testing.resume import assert_resumes_exactly, same

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seekable.dataset.dataset import Dataset

__all__ = ["FormatTests"]

_WRITTEN_AT = 1_700_000_000
"""The time of files that tests write, in seconds."""

_READ_ELSEWHERE = (
    "import sys, cloudpickle\n"
    "ds = cloudpickle.load(sys.stdin.buffer)\n"
    "sys.stdout.buffer.write(cloudpickle.dumps((ds.fingerprint, list(ds[::-1]))))\n"
)


class FormatTests:
    r"""Tests a format; pytest runs the methods of a class that is derived from this one.

    Override ``write`` and ``records``, and ``options`` where ``sk.open`` needs arguments. Some ten records in
    two files are enough.

    Example:
        >>> from pathlib import Path
        >>> class TestLines(FormatTests):
        ...     def write(self, folder):
        ...         for name, lines in (("a", "0\n1\n2\n"), ("b", "3\n4\n5\n6\n")):
        ...             Path(folder, f"{name}.txt").write_text(lines)
        ...         return folder
        ...
        ...     def records(self):
        ...         return [str(number) for number in range(7)]
        >>> TestLines().test_records_are_right()
    """

    options: ClassVar[dict[str, Any]] = {}
    """The arguments of ``sk.open`` besides the source."""

    def write(self, folder: str) -> Any:
        """Write data into an empty folder, the same at each call; return the source to open."""
        message = f"{type(self).__name__} must have a method write(folder)"
        raise WrongType(message)

    def records(self) -> list[Any]:
        """Return the records that were written, in the order of the dataset."""
        message = f"{type(self).__name__} must have a method records()"
        raise WrongType(message)

    def open(self, source: Any, **options: Any) -> Dataset:
        """Return the dataset of a source."""
        return open_dataset(source, **{"index": Index(jobs=1), **self.options, **options})

    def test_records_are_right(self) -> None:
        """The records are those that were written, in their order."""
        with self._written() as source:
            found, due = list(self.open(source)), self.records()
        _check(len(found) == len(due), f"there are {len(found)} records, and {len(due)} were written")
        for row, (one, other) in enumerate(zip(found, due, strict=True)):
            _check(same(one, other), f"record {row} is {one!r:.300}, and {other!r:.300} was written")

    def test_a_record_is_the_same_however_it_is_read(self) -> None:
        """Alone, in batches, after other reads, by columns, by workers and by ranks."""
        with self._written() as source:
            answers = check(lambda **options: self.open(source, **options))
            wrong = [answers] if isinstance(answers, Refused) else answers.values()
            _check(
                not any(isinstance(answer, Refused) for answer in wrong),
                f"a record is refused: {answers!r:.300}",
            )

    def test_an_index_is_made_once(self) -> None:
        """A second opening writes nothing, and gives the same dataset."""
        with self._written() as source, tempfile.TemporaryDirectory() as index:
            first = self.open(source, index=Index(folder=index, jobs=1)).fingerprint
            before = _files(index)
            again = self.open(source, index=Index(folder=index, jobs=1)).fingerprint
            _check(bool(before), "no index was written")
            _check(
                before == _files(index), f"the second opening changed the index: {before}, {_files(index)}"
            )
            _check(first == again, f"the fingerprint was {first}, and is {again} with the index")

    def test_a_location_leads_back_to_its_record(self) -> None:
        """``locate`` names a file that exists, and ``find`` gives the row for it."""
        with self._written() as source:
            ds = self.open(source)
            for row in range(len(ds)):
                place: Any = ds.locate(row)
                _check(os.path.exists(place.path), f"record {row} lies in {place.path!r}, which is not there")
                found = ds.find(place.path, place.row)
                _check(row in found, f"record {row} lies at {place}, where find() has {found}")

    def test_it_resumes_exactly_at_every_cut(self) -> None:
        """A shuffled training over three epochs is restored at each cut, twice, and in another process."""
        with self._written() as source:
            ds = self.open(source)
            assert_resumes_exactly(partial(_loader, ds), new_process=False)
            assert_resumes_exactly(partial(_loader, ds), cuts=(0, 1, 4))

    def test_every_epoch_has_each_record_once(self) -> None:
        """So it is over three epochs of a shuffle, and over the lanes of a stream."""
        with self._written() as source:
            ds = self.open(source)
            size = len(ds)
            places = [ds.locate(row) for row in range(size)]
            shuffled = ds.shuffle(seed=3)
            for epoch in range(3):
                drawn = Counter(map(repr, node_of(shuffled).plan(np.arange(size) + epoch * size).locate()))
                _check(drawn == Counter(map(repr, places)), f"epoch {epoch} has not each record once")
            streamed = list(ds.stream(lanes=3, epochs=1))
            _check(len(streamed) == size, f"a stream has {len(streamed)} of {size} records")

    def test_another_process_reads_the_same(self) -> None:
        """A pickled dataset has the same fingerprint and the same records elsewhere."""
        with self._written() as source:
            ds = self.open(source)
            done = subprocess.run(  # noqa: S603 - this interpreter
                [sys.executable, "-c", _READ_ELSEWHERE],
                input=cloudpickle.dumps(ds),
                capture_output=True,
                check=False,
            )
            _check(not done.returncode, f"the other process ended with {done.stderr.decode()}")
            fingerprint, records = cloudpickle.loads(done.stdout)
            _check(fingerprint == ds.fingerprint, "its fingerprint is another one")
            _check(same(records, list(ds[::-1])), f"its records are others: {records!r:.300}")

    def test_a_pipeline_file_opens_the_same(self) -> None:
        """A file that ``ds.save`` wrote is loaded with the same fingerprint and records."""
        with self._written() as source, tempfile.TemporaryDirectory() as folder:
            ds = self.open(source).shuffle(seed=1)
            ds.save(path := os.path.join(folder, "pipeline.json"))
            loaded = load_pipeline(path)
            _check(
                loaded.fingerprint == ds.fingerprint, "the fingerprint of the loaded pipeline is another one"
            )
            _check(same(list(loaded), list(ds)), "the records of the loaded pipeline are others")

    def test_damaged_files_give_errors_that_say_so(self) -> None:
        """Of a file that is cut, emptied or gone an open dataset has the old records, or errors of seekable.

        Opened again, it may have what is left of them; an error is one of seekable then, too.
        """
        due = self.records()
        for damage in (_halved, _emptied, os.remove):
            with self._written() as source:
                ds = self.open(source)
                list(ds)
                for path in {place.path for row in range(len(ds)) for place in [ds.locate(row)]}:
                    damage(path)
                for row, found in _answers(ds):
                    what = f"after {damage.__name__}, record {row} is {found!r:.300}"
                    _check(any(same(found, other) for other in due), what)
                # That a file lacks its end may also be said by a warning.
                with suppress(SeekableError), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    list(_answers(self.open(source)))

    @contextmanager
    def _written(self) -> Iterator[Any]:
        with tempfile.TemporaryDirectory() as folder:
            source = self.write(folder)
            # Files that were changed a moment ago are looked at again: the next change could have their time.
            for path in _files(folder):
                os.utime(path, (_WRITTEN_AT, _WRITTEN_AT))
            yield source


def _loader(ds: Dataset) -> Loader:
    return Loader(ds.shuffle(seed=7), batch_size=3, collate=list)


def _check(is_right: bool, words: str) -> None:  # noqa: FBT001 - an assertion that python -O keeps
    if not is_right:
        raise AssertionError(words)


def _answers(ds: Dataset) -> Iterator[tuple[int, Any]]:
    """Yield each row with its record; rows with an error of ours are left out."""
    for row in range(len(ds)):
        with suppress(SeekableError):
            yield row, ds[row]


def _halved(path: str) -> None:
    os.truncate(path, os.path.getsize(path) // 2)


def _emptied(path: str) -> None:
    os.truncate(path, 0)


def _files(folder: str) -> dict[str, tuple[int, int]]:
    """Return the size and the time of each file below a folder."""
    found = (path for path in Path(folder).rglob("*") if path.is_file())
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in found}
