"""The page of an error: what was asked for, why it cannot be shown, and what helps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.dataset.dataset import Dataset
from seekable.errors import (
    AccessDenied,
    AmbiguousKey,
    BadValue,
    CorruptRecord,
    CorruptState,
    DataNotFound,
    IndexStale,
    InvalidArgument,
    KeyNotFound,
    OutOfRange,
    SeekableError,
    WrongType,
)
from seekable.loader.loader import Loader
from seekable.nodes.bases import leaves_of
from seekable.viewer.facts.documents import json_safe
from seekable.viewer.facts.sources import data_of
from seekable.viewer.page import Page
from seekable.viewer.stale import changed_files

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (KeyNotFound, 404),
    (AmbiguousKey, 404),
    (DataNotFound, 404),
    (OutOfRange, 404),
    (InvalidArgument, 400),
    (WrongType, 400),
    (IndexStale, 409),
    (CorruptRecord, 422),
    (AccessDenied, 403),
    (BadValue, 422),
    (CorruptState, 422),
    (OverflowError, 400),
)
_HEADINGS = {
    404: "Not found",
    400: "That cannot be read",
    409: "The data has changed",
    422: "A corrupt record",
}


def error_page(error: Exception, opened: Opened, kind: str = "", name: str = "") -> Page:
    """Return the page of an error.

    Args:
        error: what the page of the address raised.
        opened: what is open.
        kind: the kind of what the address names: ``d`` for a dataset, ``p`` for a pipeline.
        name: its name.
    """
    status = next((code for kind_of, code in _STATUS if isinstance(error, kind_of)), 500)
    document: dict[str, Any] = {
        "error": json_safe(
            str(error) if isinstance(error, SeekableError) else f"{type(error).__name__}: {error}"
        ),
        "kind": type(error).__name__,
        "status": status,
    }
    shown: dict[str, Any] = {"last": None, "reopens": None, "of": f"{kind}/{name}"}
    dataset = opened.datasets.get(name) if kind == "d" else None
    if isinstance(error, IndexStale):
        document["files"] = changed_files(_sources(opened, kind, name))
        shown["reopens"] = name if name in opened.openers else None
    elif isinstance(error, OutOfRange) and dataset is not None and dataset.size:
        shown["last"] = dataset.size - 1
    heading = "A corrupt state" if isinstance(error, CorruptState) else _HEADINGS.get(status, "An error")
    return Page("error", heading, document, shown, status=status)


def _sources(opened: Opened, kind: str, name: str) -> list[Any]:
    """Return the sources of the data of a dataset or a pipeline."""
    root: Any = opened.datasets.get(name) if kind == "d" else None
    if kind == "p" and name in opened.pipelines:
        pipeline = opened.pipelines[name].pipeline
        root = pipeline.dataset if isinstance(pipeline, Loader) else pipeline
    leaves = leaves_of(root.node) if isinstance(root, Dataset) else ()
    return [source for source in map(data_of, leaves) if source is not None]
