"""The opening of data whose index is being built: how far it is, and the heads of its files meanwhile."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable.errors import SeekableError
from seekable.formats.registry import find_data
from seekable.viewer.facts.documents import json_safe
from seekable.viewer.hooked_work import hooked

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from seekable.dataset.dataset import Dataset
    from seekable.parallel.progress import Progress, ProgressHook
    from seekable.viewer.jobs import Partial
    from seekable.viewer.opened import Opened

_SOON_SECONDS = 1.0
_FILES_SHOWN = 3
_HEAD_BYTES = 1000
_HEAD_LINES = 5


@dataclass(frozen=True, slots=True)
class OpeningPart:
    """The progress of an index that is built."""

    done: int
    """Bytes of the files that were read."""

    of: int
    files_done: int
    files: int
    records: int
    """The records that were found so far."""

    def document(self) -> dict[str, Any]:
        """Return the progress as a JSON-safe dict."""
        return {
            "done": self.done,
            "of": self.of,
            "unit": "bytes",
            "files_done": self.files_done,
            "files": self.files,
            "records": self.records,
        }


def opening_work(
    call: Callable[[ProgressHook], Dataset], keep: Callable[[Dataset], None]
) -> Generator[Partial]:
    """Yield the progress of the opening of data.

    Args:
        call: opens the data, and reports the progress of its index to a hook.
        keep: takes the dataset, before the last item.
    """

    def opened(hook: ProgressHook) -> OpeningPart:
        last: list[Progress] = []

        def reported(progress: Progress) -> None:
            last[:] = [progress]
            hook(progress)

        dataset = call(reported)
        keep(dataset)
        size, files = (last[-1].bytes, last[-1].files) if last else (0, 0)
        return OpeningPart(size, size, files, files, dataset.size or 0)

    return hooked(opened, _shown)


def open_soon(opened: Opened, name: str) -> None:
    """Open data now, or in the background where its index takes longer than a second.

    Data of the name that is open already stays open until then, and where it fails.

    Raises:
        BaseException: what the opening raised within that second.
    """

    def keep(dataset: Dataset) -> None:
        opened.datasets[name] = dataset
        opened.kept.clear()

    # A job that is done would be returned again for the same key.
    key = (name, len(opened.jobs.all()))
    job = opened.jobs.start("index", key, opening_work(opened.openers[name], keep))
    opened.opening[name] = job
    if job.wait(_SOON_SECONDS):
        del opened.opening[name]
        if job.error is not None:
            raise job.error


def heads_of(path: str, format_name: str | None = None) -> list[dict[str, Any]]:
    """Return the first lines of the first files of a path; nothing where they cannot be read.

    Args:
        path: a path, a folder or a glob of this machine; of anything else there are no heads.
        format_name: the format that the user gave.
    """
    if "://" in path:
        return []
    with suppress(SeekableError, OSError, ValueError):
        files = [(run.root, name) for run in find_data(path, format_name=format_name) for name in run.names]
        return [
            {"file": json_safe(name), **_head(os.path.join(root, name))}
            for root, name in files[:_FILES_SHOWN]
        ]
    return []


def _head(path: str) -> dict[str, Any]:
    with open(path, "rb") as file:
        head, size = file.read(_HEAD_BYTES), os.fstat(file.fileno()).st_size
    if b"\0" in head:
        return {"bytes": size, "text": None}
    lines = head.decode("utf-8", "backslashreplace").splitlines()[:_HEAD_LINES]
    return {"bytes": size, "text": "\n".join(lines)}


def _shown(progress: Progress) -> OpeningPart:
    return OpeningPart(
        progress.bytes_done, progress.bytes, progress.files_done, progress.files, progress.records
    )
