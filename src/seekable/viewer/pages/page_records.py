"""The records of a page, which is not kept waiting where they come slowly, as from large tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from seekable.errors import SeekableError
from seekable.nodes.node import node_of
from seekable.viewer.facts.filtered_rows import is_quick, is_small
from seekable.viewer.facts.reading import read_sample
from seekable.viewer.pages.job import PageWork, result_of

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from seekable._typing import Int64s
    from seekable.nodes.node import Node
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """Records that were read."""

    records: Sequence[Any]

    @property
    def done(self) -> int:
        """The number of records."""
        return len(self.records)

    @property
    def of(self) -> int:
        """The same number."""
        return len(self.records)

    def document(self) -> dict[str, Any]:
        """Return the number of records, JSON-safe."""
        return {"done": self.done, "of": self.of, "unit": "rows"}


@dataclass(frozen=True, slots=True)
class PageRecords:
    """The rows of a page, and their records."""

    numbers: Int64s

    records: Sequence[Any] | None
    """None while they are read, longer than a page may take."""


def data_key(opened: Opened, name: str) -> tuple[str, str]:
    """Return what tells data from others, and from itself before it was opened again."""
    node = node_of(opened.dataset(name))
    try:
        return name, node.fingerprint
    except SeekableError:
        return name, ""


def rows_looked_at(opened: Opened, name: str) -> int:
    """Return how many rows figures are made of: all where these are small, else those of a sample."""
    node = node_of(opened.dataset(name))
    return node.size or 0 if is_small(node) else opened.sample


def page_records(opened: Opened, asked: Asked, numbers: Int64s) -> PageRecords:
    """Return the records at some rows; documents and tables for programs (``as=``) wait for them.

    Raises:
        SeekableError: the records cannot be read.
    """
    return PageRecords(numbers, _read_soon(opened, asked, numbers))


def _read_soon(opened: Opened, asked: Asked, numbers: Int64s) -> Sequence[Any] | None:
    node = node_of(opened.dataset(asked.name))
    if not numbers.size or is_quick(node) or "as" in asked.query:
        return read_sample(node, numbers) if numbers.size else []
    key = ("read", *data_key(opened, asked.name), numbers.tobytes())
    kept: Sequence[Any] | None = opened.drawn.peek(key)
    if kept is not None:
        return kept
    work = PageWork("read", key, lambda: _read(node, numbers), at_once=True)
    job = result_of(opened, work, small=False, anew=True).job
    if job is None or job.is_live:
        return None
    # A record may be large, so jobs that have ended are not what keeps it.
    opened.jobs.forget(job)
    if job.error is not None:
        raise job.error
    assert isinstance(job.partial, ReadRecords)
    return opened.drawn.get(key, partial(_records_of, job.partial))


def _records_of(found: ReadRecords) -> Sequence[Any]:
    return found.records


def _read(node: Node, numbers: Int64s) -> Generator[ReadRecords]:
    yield ReadRecords(read_sample(node, numbers))
