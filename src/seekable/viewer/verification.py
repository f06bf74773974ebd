"""The comparison of data with its index as work of a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable.dataset.verify_data import verify_sources
from seekable.viewer.facts.verification_document import verification_document
from seekable.viewer.hooked_work import hooked

if TYPE_CHECKING:
    from collections.abc import Generator

    from seekable.index.verification import Verification
    from seekable.nodes.contract import Node
    from seekable.parallel.progress import Progress, ProgressHook
    from seekable.viewer.jobs import Partial

__all__ = ["VerificationPart", "verification_work"]


@dataclass(frozen=True, slots=True)
class VerificationPart:
    """The progress of a verification, and at last its findings."""

    done: int
    """Bytes that were read; of the decoding of records, rows; of a plain verification, files."""

    of: int

    unit: str
    """The unit of both: "bytes", "rows" or "files"."""

    path: str
    deep: bool
    decode: bool

    found: Verification | None
    """None until the end: problems are sorted by file."""

    def document(self) -> dict[str, Any]:
        """Return the progress, and at the end what ``seekable verify --json`` prints, JSON-safe."""
        found = self.found
        end = (
            {}
            if found is None
            else verification_document(self.path, found, deep=self.deep, decode=self.decode)
        )
        return {"done": self.done, "of": self.of, "unit": self.unit, **end}


def verification_work(
    node: Node, path: str, *, deep: bool, decode: bool, index_dir: str | None
) -> Generator[Partial]:
    """Yield the progress of a comparison of the files of a dataset with their index, and its result.

    It reads in one thread of this process, so that pages are answered meanwhile.

    Args:
        node: the dataset.
        path: what the user named it.
        deep: read all of each file, and not its ends alone.
        decode: decode each record too.
        index_dir: the folder of the index, if the user named one.
    """

    def part(done: int, of: int, unit: str, found: Verification | None = None) -> VerificationPart:
        return VerificationPart(done, of, unit, path, deep, decode, found)

    def call(hook: ProgressHook) -> VerificationPart:
        found = verify_sources(
            node, deep=deep, decode=decode, index_dir=index_dir, jobs=1, executor=None, progress=hook
        )
        return part(found.files, found.files, "files", found)

    def shown(progress: Progress) -> VerificationPart:
        if progress.rows is not None:
            return part(progress.records, progress.rows, "rows")
        if deep:
            return part(progress.bytes_done, progress.bytes, "bytes")
        return part(progress.files_done, progress.files, "files")

    return hooked(call, shown)
