"""What is written, a dataset or a stream, and one call that writes its missing files.

`seekable.writing.write` goes the same way for both. What differs is here: `write_dataset` and `write_stream`
each have a function that makes a `Source`, and a `Writing`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from seekable.writing.shard import Counter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Executor
    from typing import Any

    from seekable.formats.file_format import FileFormat, Preview
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import Watch
    from seekable.writing.manifest import Manifest, ManifestFile
    from seekable.writing.target import Target

__all__ = ["CheckSeen", "Source", "Writing"]


class CheckSeen(Protocol):
    """Checks that the nodes of a cluster see the files that are read, and the folder that is written."""

    def __call__(self, executor: Executor | None, /, *, folder: str) -> None:
        """Raise an error that says what a node does not see."""


@dataclass(frozen=True, slots=True, eq=False)
class Source:
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

    check_seen: CheckSeen

    writing: Callable[[FileFormat, Target, Manifest, ManifestFile, Watch], Writing]
    """Begins to write the missing files; the caller holds the lock."""


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
        self.tally = Counter(watch)
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
