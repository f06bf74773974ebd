"""Executors whose workers are other machines: what they offer beside calls, and a check of their nodes.

Any `concurrent.futures.Executor` does the work of this library. One over a cluster may be a `ClusterExecutor`
too. Then more requests are under way, large bytes go to each node once, and what would make the nodes give
another result than this process is found before the work begins.
"""

from __future__ import annotations

import os
import secrets
import sys
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from seekable._lazy import lazy
from seekable._version import __version__
from seekable.errors import DataNotFound, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from concurrent.futures import Executor

    from seekable.order import permutation
else:
    permutation = lazy("seekable.order.permutation")

__all__ = ["ClusterExecutor", "check_nodes", "most_requests"]

_MOST_FILES = 64
"""The most files that are compared on each node."""

_MOST_DIFFERENCES = 5
"""The most differences that an error message has."""


@runtime_checkable
class ClusterExecutor(Protocol):
    """The contract of an executor whose workers are other machines, beside the calls of every executor.

    All of it may be called by any thread. A call that reaches a worker may be made again if the worker dies.
    """

    most: int
    """The number of requests to keep under way."""

    def shared(self, data: bytes) -> Callable[[], bytes]:
        """Put bytes where all workers can fetch them, and return a function that fetches them.

        The function is an argument of ``submit`` itself, not a part of one. It can be called in a worker.
        """

    def on_each_node(self, function: Callable[..., Any], *args: Any) -> Mapping[str, Any]:
        """Call a function once on each node that is alive and may get work.

        Returns:
            What the function returned, or the error that it raised, by the names of the nodes. A node that
            died meanwhile has a `concurrent.futures.BrokenExecutor`.
        """


def most_requests(executor: Executor, *, otherwise: int) -> int:
    """Return the number of requests to keep under way in an executor.

    Args:
        executor: the executor.
        otherwise: the number for an executor that says nothing.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> most_requests(ThreadPoolExecutor(1), otherwise=64)
        64
    """
    return executor.most if isinstance(executor, ClusterExecutor) else otherwise


def check_nodes(executor: Executor | None, paths: Iterable[str], *, folder: str | None = None) -> None:
    """Check that the nodes of a cluster see the same files as this process, and have the same software.

    Of the files in each folder the first and the last are compared. Nothing is done for executors that are no
    `ClusterExecutor`.

    Args:
        executor: the executor that will get the work; None for none.
        paths: the data, as files and folders; addresses are left out, because all nodes see the same objects.
        folder: where the workers will write, if they write to a disk.

    Raises:
        DataNotFound: a node sees another file, or none, or another folder.
        InvalidArgument: a node has other software, or gave no answer.
    """
    if not isinstance(executor, ClusterExecutor):
        return
    files = {path: _described(path) for path in _compared(paths)}
    with _marked(folder) as mark:
        answers = executor.on_each_node(_look, sorted(files), mark and mark.path)
    software = _Software.here()
    differences: list[_Difference] = []
    for node, answer in answers.items():
        if isinstance(answer, _Sight):
            differences += answer.differences(node, software, files, mark)
        elif not isinstance(answer, BrokenExecutor):
            differences.append(_Difference(node, "this library", "an answer", _error(answer), is_file=False))
    if differences:
        raise _error_of(differences)


@dataclass(frozen=True, slots=True)
class _Software:
    """The versions that must be the same on all nodes, so that all compute the same."""

    seekable: str
    python: str
    order: int
    """A place in a permutation: a golden value."""

    @staticmethod
    def here() -> _Software:
        order = permutation.permute_one(123_456, 1_000_003, 42)
        return _Software(__version__, "{}.{}".format(*sys.version_info), order)


@dataclass(frozen=True, slots=True)
class _Mark:
    """A file that was written into the folder of results for the time of a check."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class _Difference:
    """Something that a node sees in another way than this process."""

    node: str
    subject: str
    expected: str
    found: str
    is_file: bool

    def __str__(self) -> str:
        return f"{self.subject} on {self.node}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True, slots=True)
class _Sight:
    """The software, the files and the mark as one node sees them."""

    software: _Software
    files: dict[str, str]
    mark: str
    """The content of the mark, or why it cannot be read."""

    def differences(
        self, node: str, software: _Software, files: dict[str, str], mark: _Mark | None
    ) -> Iterator[_Difference]:
        """Yield what is not as this process sees it."""
        for name in ("seekable", "python", "order"):
            expected, found = str(getattr(software, name)), str(getattr(self.software, name))
            if expected != found:
                yield _Difference(node, f"the version of {name}", expected, found, is_file=False)
        for path, expected in files.items():
            if self.files[path] != expected:
                yield _Difference(node, repr(path), expected, self.files[path], is_file=True)
        if mark is not None and self.mark != mark.content:
            subject = f"the folder of results {os.path.dirname(mark.path)!r}"
            yield _Difference(node, subject, "the folder of this process", self.mark, is_file=True)


def _look(paths: list[str], mark: str | None) -> _Sight:
    """Return what this machine sees: runs on each node."""
    return _Sight(
        _Software.here(), {path: _described(path) for path in paths}, _content(mark) if mark else ""
    )


def _described(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError as error:
        return f"no such file ({error.strerror})"
    return f"{status.st_size:,} bytes of the time {status.st_mtime_ns / 1e9:.9f}"


def _content(mark: str) -> str:
    try:
        with open(mark, encoding="ascii") as file:
            content = file.read()
    except OSError as error:
        return f"another folder, or none ({error.strerror})"
    return content if os.access(os.path.dirname(mark), os.W_OK) else "a folder that may not be written"


def _compared(paths: Iterable[str]) -> list[str]:
    """Return the first and the last file of each folder, as absolute paths."""
    ends: dict[str, tuple[str, str]] = {}
    for path in paths:
        if "://" in path:
            continue
        for file in _ends_of(os.path.abspath(path)):
            first, _ = ends.get(os.path.dirname(file), (file, file))
            ends[os.path.dirname(file)] = first, file
    files = list(dict.fromkeys(file for pair in ends.values() for file in pair if os.path.exists(file)))
    step = -(-len(files) // _MOST_FILES) or 1
    return files[::step]


def _ends_of(path: str) -> list[str]:
    """Return a file; of a folder its first and its last file."""
    if not os.path.isdir(path):
        return [path]
    with os.scandir(path) as entries:
        names = sorted(entry.name for entry in entries if entry.is_file() and not entry.name.startswith("."))
    return [os.path.join(path, name) for name in dict.fromkeys([*names[:1], *names[-1:]])]


@contextmanager
def _marked(folder: str | None) -> Iterator[_Mark | None]:
    """Have a file of random content in a folder, or in the folder that it will be made in."""
    if folder is None or "://" in folder:
        yield None
        return
    existing = os.path.abspath(folder)
    while not os.path.isdir(existing):
        existing = os.path.dirname(existing)
    mark = _Mark(os.path.join(existing, f".seekable-nodes-{secrets.token_hex(8)}"), secrets.token_hex(8))
    try:
        with open(mark.path, "x", encoding="ascii") as file:
            file.write(mark.content)
        yield mark
    finally:
        with suppress(FileNotFoundError):
            os.remove(mark.path)


def _error(answer: object) -> str:
    return f"{type(answer).__name__}: {answer}"


def _error_of(differences: list[_Difference]) -> DataNotFound | InvalidArgument:
    shown = "; ".join(map(str, differences[:_MOST_DIFFERENCES]))
    left = len(differences) - _MOST_DIFFERENCES
    more = f"; and {left} more" if left > 0 else ""
    if any(difference.is_file for difference in differences):
        return DataNotFound(
            f"not all nodes of the cluster see the same files: {shown}{more}. Nothing was begun. Use a disk "
            f"that all nodes share, at the same path, or an object store"
        )
    return InvalidArgument(
        f"not all nodes of the cluster have the software of this process: {shown}{more}. Nothing was begun. "
        f"Install seekable {__version__} for Python {_Software.here().python} on each node"
    )
