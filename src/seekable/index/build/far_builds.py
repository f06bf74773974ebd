"""What the index asks of files that lie far away: ``far().builds`` of `seekable.storage.far`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Executor, Future

    from seekable.index.build.data_file import DataFile
    from seekable.index.build.kept_parts import Answer
    from seekable.index.build.parts import FileToIndex
    from seekable.index.build.scan import ScanBatch, ScanJob
    from seekable.index.fileset import FileSet
    from seekable.index.surveyor import Finder
    from seekable.storage.far import Look


class FarPieces(Protocol):
    """Pieces of a file, all fetched at once."""

    def range(self, start: int, stop: int) -> memoryview:
        """Return some bytes, of a piece or, in a request of their own, of what lies between.

        Raises:
            IndexStale: the file is of another version now.
            DataNotFound, AccessDenied, Unreachable: it cannot be read.
        """


class FarBuilds(Protocol):
    """Far files while they are indexed and verified; nothing of them is kept in a cache."""

    def file(self, path: str, look: Look, on_wait: Callable[[int], None] | None) -> DataFile:
        """Return a file as it was looked at, open; nothing is fetched.

        Args:
            path: its address.
            look: its size, and the number that stands for its content.
            on_wait: is called with 0 about ten times a second while bytes are awaited.
        """

    def file_of_placeholder(self, placeholder: DataFile, descriptor: int, path: str) -> DataFile:
        """Return a placeholder whose bytes for scanners are those of the file that it stands for.

        Args:
            placeholder: the placeholder as a local file.
            descriptor: its descriptor.
            path: its path.
        """

    def pieces(self, path: str, look: Look, pieces: Iterable[tuple[int, int]]) -> FarPieces:
        """Begin to fetch pieces of a file, each given by its first byte and the byte after its last."""

    def before(
        self, tasks: Sequence[FileToIndex], finder: Finder, *, most_bytes: int | None
    ) -> tuple[Sequence[FileToIndex], Sequence[str]]:
        """Take over what indexes published beside files have; return the files left, and notices.

        Raises:
            InvalidArgument: more than ``most_bytes`` may have to be fetched; of the data nothing was.
        """

    def submit(
        self, executor: Executor, batch: ScanBatch, read: Callable[[ScanJob, int], None]
    ) -> Future[Answer]:
        """Submit the scan of some parts to threads, which take small files when their bytes are here.

        Args:
            executor: the threads.
            batch: the parts.
            read: is called with a part and the number of its bytes that were read since the last call.
        """

    def newest(self, path: str) -> Look:
        """Ask the store, past all listings, for the size and the number of a file.

        Raises:
            DataNotFound, AccessDenied, Unreachable: it cannot be looked at.
        """

    def check_publishable(self, roots: Iterable[str]) -> None:
        """Check that the index of some roots can be published.

        Raises:
            InvalidArgument: one of them is a folder of this machine.
        """

    def publish(self, files: FileSet) -> Sequence[str]:
        """Write the index of some files beside them, and return a sentence on each root.

        Raises:
            AccessDenied, Unreachable, IndexStale: it cannot be published.
        """

    def by_version(self, files: FileSet) -> FileSet:
        """Return the same files, read by the versions that they have now.

        Raises:
            InvalidArgument: a bucket keeps no versions.
            IndexStale: a file is another one than the one that was indexed.
            AccessDenied, Unreachable: a version cannot be asked for.
        """

    def version_of(self, folder: str, name: str, identity: int) -> str:
        """Return the version of a file that `by_version` has kept.

        Args:
            folder: the index folder.
            name: the name of the file, relative to the folder of the data.
            identity: the number made of its etag when it was indexed.

        Raises:
            IndexStale: its version was not kept.
        """
