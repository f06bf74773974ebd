"""The identity of the data of a link: digits of a fingerprint, rows and files, in the parameter ``is``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.dataset.dataset import Dataset
from seekable.errors import SeekableError
from seekable.loader.loader import Loader
from seekable.nodes.bases import leaves_of
from seekable.viewer.facts.data_survey import files_of
from seekable.viewer.facts.sources import data_of

if TYPE_CHECKING:
    from seekable.nodes.contract import Node
    from seekable.viewer.opened import Opened

_DIGITS = 8
_TEXT = re.compile(r"([0-9a-f]{8})(?:-(\d{1,18}|endless))?(?:-(\d{1,18}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of data, or of the order of a pipeline, as it stands in links."""

    digits: str
    """The first eight hexadecimal digits of the fingerprint."""

    rows: int | None
    """Records of an epoch; None if they are endless, or if a link does not say them."""

    files: int | None

    def __str__(self) -> str:
        """Return the identity as links have it."""
        rows = "endless" if self.rows is None else self.rows
        return f"{self.digits}-{rows}" + ("" if self.files is None else f"-{self.files}")

    def changed_since(self, text: str) -> str | None:
        """Return how this differs from what a link was made of, in words; None if it is the same.

        Args:
            text: the parameter ``is`` of the link; a text that is no identity differs from nothing.

        Example:
            >>> Identity("9f3c0a1b", 301, 3).changed_since("77aa01cd-300-3")
            '300 rows are now 301'
            >>> Identity("9f3c0a1b", 301, 3).changed_since("9f3c0a1b")
        """
        found = _TEXT.fullmatch(text)
        if found is None or found[1] == self.digits:
            return None
        rows, files = (int(each) if each and each.isdigit() else None for each in (found[2], found[3]))
        parts = [
            f"{old:,} {unit} are now {new:,}"
            for unit, old, new in (("rows", rows, self.rows), ("files", files, self.files))
            if old is not None and new is not None and old != new
        ]
        if parts:
            return ", ".join(parts)
        if found[2] is None:
            return "the link does not say how many rows and files there were"
        return "as many rows and files as before, with another content or in another order"


def identity_of(opened: Opened, kind: str, name: str) -> Identity | None:
    """Return the identity of a dataset (``d``) or a pipeline (``p``); None if it is not open, or has none."""
    if kind == "d" and name in opened.datasets:
        return _of_node(opened.datasets[name].node)
    if kind == "p" and name in opened.pipelines:
        pipeline = opened.pipelines[name].pipeline
        root = pipeline.dataset if isinstance(pipeline, Loader) else pipeline
        if isinstance(root, Dataset):
            return _of_node(root.node)
        return Identity(_digits(root.fingerprint), None, None)
    return None


def _of_node(node: Node) -> Identity | None:
    leaves = [leaf for leaf in map(data_of, leaves_of(node)) if leaf is not None]
    try:
        files = sum(len(each) for each in files_of(leaves)) if leaves else None
        return Identity(_digits(node.fingerprint), node.size, files)
    except SeekableError:
        return None


def _digits(fingerprint: str) -> str:
    return fingerprint.rpartition(":")[2][:_DIGITS]
