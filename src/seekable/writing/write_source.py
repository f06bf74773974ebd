"""A dataset or a stream that is written, and one call that writes its missing files.

A stream is items in several lanes, each of which resumes from a state. The room of streams comes after this
one, so the contract of items is here, and `seekable.stream` has the class that implements it.

`seekable.writing.write` goes the same way for both. What differs is here: `write_dataset` and `write_stream`
each have a function that makes a `WriteSource`, and a `Writing`.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor
    from typing import Any

    from seekable.formats.file_format import FileFormat, Preview
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import Watch
    from seekable.writing.manifest import Manifest, ManifestFile
    from seekable.writing.target import Target

__all__ = ["LaneRun", "LanedItems", "Tally", "WriteSource", "Writing"]


class LaneRun(Protocol):
    """The items of one lane, from some state on; one thread at a time uses it."""

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Return the iterator over the next items, each after its token; always the same iterator."""
        ...

    @property
    def holes(self) -> int:
        """The number of records that the sources left out since the run began."""
        ...

    def state(self) -> list[Any]:
        """Return the state after the last item, JSON-safe."""
        ...


class LanedItems(Protocol):
    """Items in a fixed number of lanes: slot ``s`` is the next item of lane ``s % lanes``. Picklable."""

    @property
    def lanes(self) -> int:
        """The number of lanes, at least one."""
        ...

    @property
    def fingerprint(self) -> str:
        """The digest of everything that decides the items and their order."""
        ...

    def functions(self) -> Sequence[Callable[..., Any]]:
        """Return the functions whose code decides the items, but for those that a ``version`` stands for."""
        ...

    def paths(self) -> Iterator[str]:
        """Return an iterator over the absolute paths of the data files that are read."""
        ...

    def declared(self) -> Mapping[str, Any] | None:
        """Return the columns and their Arrow types as the data files declare them; see `Node.declared`."""
        ...

    def run(self, lane: int, state: list[Any] | None) -> LaneRun:
        """Return the items of a lane after a state; None for the first state."""
        ...

    def named(self, lane: int, token: Any) -> str:
        """Return the lane, the token and the places of the records of an item, for error messages."""
        ...


class _CheckSeen(Protocol):
    """Checks that the nodes of a cluster see the files that are read, and the folder that is written."""

    def __call__(self, executor: Executor | None, /, *, folder: str) -> None:
        """Raise an error that says what a node does not see."""


@dataclass(frozen=True, slots=True, eq=False)
class WriteSource:
    """The records of a dataset, or the items of a stream, that are to be written."""

    fingerprint: str
    """The digest of everything that decides the records and their order."""

    records: int | None
    """The number of records of a dataset; None for a stream, which does not say it."""

    lanes: int | None
    """The number of lanes of a stream; None for a dataset."""

    functions: Callable[[], Iterable[Callable[..., Any]]]
    """Returns the functions whose code decides the records."""

    paths: Callable[[], Iterator[str]]
    """Returns the paths of all data files that are read."""

    origins: Callable[[], Sequence[str]]
    """Returns the files that records are traced to; none for a stream."""

    preview: Preview
    """Some of the records."""

    check_seen: _CheckSeen

    writing: Callable[[FileFormat, Target, Manifest, ManifestFile, Watch], Writing]
    """Begins to write the missing files; the caller holds the lock."""


class Tally:
    """Counts the records that the thread of its maker writes; it does nothing in other threads."""

    def __init__(self, tell: Callable[[int], None] | None = None) -> None:
        self._tell = tell
        self._thread = threading.get_ident()
        self.done = 0
        """The records of files that are finished."""

    def add(self, records: int) -> None:
        """Report the number of records written so far to a file that is not finished."""
        if self._tell is not None and threading.get_ident() == self._thread:
            self._tell(self.done + records)

    def __reduce__(self) -> tuple[type[Tally], tuple[()]]:
        """Pickle as a counter that does nothing."""
        return Tally, ()


class Writing(ABC):
    """The writing of the missing files by one call, which holds the lock of the folder."""

    def __init__(
        self, form: FileFormat, target: Target, manifest: Manifest, file: ManifestFile, watch: Watch
    ) -> None:
        """Remove what killed processes left.

        Args:
            form: the format, settled.
            target: the place of the files.
            manifest: the manifest, whose finished files are kept.
            file: the file of the manifest.
            watch: is told the number of records that are written.
        """
        self.form = form
        self.target = target
        self.manifest = manifest
        self.file = file
        self.watch = watch
        self.tally = Tally(watch)
        self.kept = 0
        """The number of files that an earlier call had written."""
        self._noted = time.monotonic()
        self._remove_torn()

    @property
    @abstractmethod
    def is_complete(self) -> bool:
        """True if all files are finished."""

    @abstractmethod
    def write_missing(self, using: ExecutionOptions) -> None:
        """Write the files that are missing, and `note` them now and then."""

    @abstractmethod
    def write_manifest(self) -> None:
        """Write the manifest with all files that are finished."""

    def run(self, using: ExecutionOptions) -> None:
        """Write the missing files; what was finished is in the manifest, also after an error."""
        try:
            self.write_missing(using)
        finally:
            self.note(seconds=0)
            # Workers that an error ended, or nodes that died, left unfinished files. In a user's executor
            # others may still be written, unless all are finished.
            if using.executor is None or self.is_complete:
                self._remove_torn()

    def note(self, *, seconds: float) -> None:
        """Write the manifest if the last write was at least ``seconds`` ago."""
        now = time.monotonic()
        if now - self._noted >= seconds:
            self.write_manifest()
            self._noted = now

    def _remove_torn(self) -> None:
        self.target.remove_torn(self.form.patterns, self.manifest.identity.ending)
