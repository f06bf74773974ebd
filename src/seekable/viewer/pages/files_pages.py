"""The files of a dataset: their sizes, which have changed, and a comparison of them with the index."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.dataset.verify_data import verify_sources
from seekable.errors import KeyNotFound
from seekable.formats.shar.shar_source import DataSource
from seekable.nodes.node import node_of
from seekable.viewer.fact_figures import files_figure
from seekable.viewer.facts.data_survey import data_facts, file_sizes, files_of
from seekable.viewer.facts.json_documents import json_safe, verification_document
from seekable.viewer.facts.reading import FROM_INDEX
from seekable.viewer.jobs import hooked
from seekable.viewer.page import Page, PageRows, Redirect, Svg
from seekable.viewer.pages.job import asked_job, started
from seekable.viewer.pages.page_records import page_records
from seekable.viewer.pages.row_table import table_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from seekable.index.fileset import FileSet
    from seekable.index.verification import Verification
    from seekable.nodes.node import Node
    from seekable.parallel.progress import Progress, ProgressHook
    from seekable.viewer.jobs import Partial
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked

_SORTS = ("name", "records", "bytes")


_MOST_SHOWN = 20

_GOOD = frozenset({"as indexed", "in a store"})

_DEPTHS = ("ends", "deep", "decode")
_HEADER = ("kind", "path", "row", "offset", "message")


def files(opened: Opened, asked: Asked) -> Page:
    """Return the files of a dataset: the records and bytes of each, and whether it is as it was indexed."""
    found = _files(opened, asked.name)
    sort, at = asked.choice("sort", _SORTS), asked.count("at", default=0)
    count = asked.count("n", default=50, least=1, most=500)
    records, sizes = found.records, found.data_sizes
    order = np.arange(len(found))
    if sort != "name":
        order = np.argsort(-(records if sort == "records" else sizes), kind="stable")
    rows = [
        [
            int(number),
            json_safe(found.name(int(number))),
            int(records[number]),
            int(sizes[number]),
            _status_of(found, int(number))[0],
        ]
        for number in order[at : at + count]
    ]
    header = ["file", "name", "records", "bytes", "index"]
    document = {
        "name": asked.name,
        "files": len(found),
        "records": int(records.sum()),
        "bytes": int(sizes.sum()),
        "made_of": FROM_INDEX,
        "sort": sort,
        "at": at,
        "n": count,
        "rows": [dict(zip(header, row, strict=True)) for row in rows],
    }
    more = {
        "before": max(0, at - count),
        "after": at + count,
        "last": max(0, len(found) - count),
        "rows": rows,
    }
    return Page("files", f"{asked.name}, files", document, more, table=PageRows(header, rows))


def files_chart(opened: Opened, asked: Asked) -> Svg:
    """Return the largest files as bars of their bytes."""
    _files(opened, asked.name)
    node = node_of(opened.dataset(asked.name))
    assert isinstance(node, DataSource)
    figure = opened.kept.get(("files", asked.name), lambda: files_figure(asked.name, file_sizes([node])))
    return Svg(figure.draw(asked.theme))


def file(opened: Opened, asked: Asked) -> Page:
    """Return one file, and its first rows."""
    found, number = _files(opened, asked.name), int(asked.path["file"])
    if number >= len(found):
        message = f"{asked.name} has {len(found):,} files, 0 to {len(found) - 1:,} (asked for: {number:,})"
        raise KeyNotFound(message)
    entry = found.entry(number)
    first, records = int(found.starts[number]), int(found.records[number])
    numbers = np.arange(first, first + min(records, 20))
    table = table_of(opened, asked, page_records(opened, asked, numbers), up="../../../")
    document: dict[str, Any] = {
        "name": asked.name,
        "file": number,
        "path": json_safe(found.shown_path(number)),
        "format": entry.format,
        "records": records,
        "bytes": int(found.data_sizes[number]),
        "first_row": first,
        "index": _status_of(found, number)[0],
        "content": entry.content_digest,
        "made_of": FROM_INDEX,
    }
    shown = {"records": table, "count": len(found)}
    return Page("file", f"{asked.name}, file {number:,}", document, shown, table=table.table)


def _files(opened: Opened, name: str) -> FileSet:
    node = node_of(opened.dataset(name))
    if not isinstance(node, DataSource):
        message = f"{name} is not made of files"
        raise KeyNotFound(message)
    return files_of([node])[0]


def changed_files(sources: Iterable[DataSource], *, most: int = _MOST_SHOWN) -> list[dict[str, Any]]:
    """Return the first files that are not as they were indexed, by their sizes and times, JSON-safe.

    Each has its path, what is different, and the time of its last change in UTC, None if it is gone.
    """
    found: list[dict[str, Any]] = []
    for files in files_of(list(sources)):
        for number in range(len(files)):
            status, since = _status_of(files, number)
            if status in _GOOD:
                continue
            found.append({"path": json_safe(files.shown_path(number)), "status": status, "since": since})
            if len(found) == most:
                return found
    return found


def _status_of(files: FileSet, number: int) -> tuple[str, str | None]:
    """Return whether a file is the one that was indexed, and when it was changed if it is not."""
    path = files.path(number)
    if "://" in path:
        return "in a store", None
    try:
        now = os.stat(path)
    except OSError:
        return "not there any more", None
    size = int(files.sizes[number])
    if now.st_size == size and now.st_mtime_ns == int(files.mtimes_ns[number]):
        return "as indexed", None
    since = datetime.fromtimestamp(now.st_mtime, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if now.st_size == size:
        return "changed since it was indexed", since
    return f"changed since it was indexed: {size:,} bytes are now {now.st_size:,}", since


def health(opened: Opened, asked: Asked) -> Page:
    """Return what a comparison would read, or how far the job of the address is and what it found.

    Raises:
        KeyNotFound: there is no such job, or no such dataset.
    """
    dataset = opened.dataset(asked.name)
    job = asked_job(opened, asked, has_result=True)
    document: dict[str, Any] = {"name": asked.name, **data_facts(node_of(dataset)), **job.document}
    shown: dict[str, Any] = {"problems": (), "depths": _DEPTHS, **job.shown}
    table = None
    if job.document:
        result = document["job"]["result"] or {}
        rows = [[problem[key] for key in _HEADER] for problem in result.get("problems", ())]
        shown["problems"] = rows
        table = PageRows(_HEADER, rows)
    return Page("health", f"{asked.name}, health", document, shown, table=table)


def verify(opened: Opened, asked: Asked) -> Redirect:
    """Start the comparison of a dataset with its index, and return where it is shown."""
    dataset, depth = opened.dataset(asked.name), asked.choice("depth", _DEPTHS)
    work = verification_work(
        node_of(dataset),
        opened.paths.get(asked.name, asked.name),
        deep=depth != "ends",
        decode=depth == "decode",
        index_dir=opened.index_dir,
    )
    # A comparison that runs is not started twice. One that has ended is done anew, because files change.
    ended = sum(job.kind == "verify" and not job.is_live for job in opened.jobs.all())
    key = (asked.name, depth, ended)
    return started(opened, asked, "verify", key, work, f"d/{asked.name}/health?job={{job}}")


@dataclass(frozen=True, slots=True)
class VerificationPart:
    """The progress of a verification, and at last its findings."""

    done: int
    """Bytes that were read, rows that were decoded, or files where only their ends are read."""

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
    """Yield how far a comparison of a dataset's files with their index is, then its result.

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
