"""The facts by which formats recognise a source: its text, the names in a folder, first bytes of files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from seekable._lazy import lazy
from seekable._typing import Value
from seekable.errors import UnsupportedFormat
from seekable.storage import listing
from seekable.storage.far import far
from seekable.storage.listing import has_addresses

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable.storage import addresses, paths
    from seekable.storage.listing import Arrange, Asked, FoundFiles, Inspect
else:
    addresses = lazy("seekable.storage.addresses")
    paths = lazy("seekable.storage.paths")

__all__ = ["Folder", "Look", "OtherTool", "find_files", "is_stored"]

_OF_SPEC = "spec"

_PEEKED_BYTES = 1 << 16

_SPEC = re.compile(r"[A-Za-z][A-Za-z0-9+., -]+:")
"""The beginning of specs and addresses; one letter is a drive of Windows."""


class Look:
    """A source as formats look at it; a folder is listed at most once."""

    def __init__(
        self,
        source: Asked | Mapping[str, Asked],
        *,
        name: str | None,
        value: Any,
        shown: str = "",
        columns: Sequence[str] | None = None,
        allow: tuple[str, ...] = (),
        index_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        """Look at a source; nothing is read before it is asked for.

        Args:
            source: the checked source of a user.
            name: the name of the format that the user gave, if any.
            value: the format that the user gave as a value, if any.
            shown: the source as the user named it, for messages.
            columns: the columns that the user named, if any.
            allow: the folders and files, besides the folder of a list, that lists of files may name.
            index_dir: the user's folder for indexes, if any.
        """
        self.source = source
        self.name, self.value = name, value
        self.shown, self.columns, self.allow, self.index_dir = shown, columns, allow, index_dir
        self.path = os.fsdecode(source) if isinstance(source, str | os.PathLike) else ""
        """The source as a text; empty for a list and a dict."""
        self.is_stored = is_stored(self.path)
        """True for an address of a store."""
        found = None if self.is_stored else _SPEC.match(self.path)
        colon = found.end() - 1 if found is not None and not os.path.lexists(self.path) else 0
        self.spec = self.path[:colon]
        """What stands before the colon of a spec; empty without one. A path that exists is none."""
        self.rest = self.path[colon + 1 :] if colon else ""
        """What follows it."""

    @property
    def asked(self) -> Asked:
        """The source, where it is not a dict."""
        assert not isinstance(self.source, Mapping)
        return self.source

    @property
    def items(self) -> list[str]:
        """The paths and globs of a source; those of a dict are none."""
        if isinstance(self.source, str | os.PathLike | Mapping):
            return [self.path] if self.path else []
        return [os.fsdecode(item) for item in self.source]

    @cached_property
    def is_folder(self) -> bool:
        """True if the source is one folder."""
        if not self.path:
            return False
        if not self.is_stored:
            return os.path.isdir(self.path)
        return not far().is_plain(self.path) and paths.is_folder(self.path)

    @cached_property
    def names(self) -> list[str]:
        """The names of the files and folders in the folder; none of a local one that cannot be listed."""
        if not self.is_folder:
            return []
        if "://" in self.path:
            return paths.list_folder(self.path)
        with suppress(OSError):
            return os.listdir(self.path)
        return []


def is_stored(path: str) -> bool:
    """Return True for an address of a store; those of the Hub are explained by its spec."""
    return "://" in path and not path.startswith("hf:") and addresses.is_address(path)


class Folder(Value, frozen=True):
    """The names in one folder, by which the tool that wrote it is recognised."""

    path: str
    """The absolute path."""

    files: frozenset[str]
    """The names of its files, without those that are skipped because of their names."""

    inner: frozenset[str]
    """The names of its subfolders, and of all that is skipped; empty subfolders may be missing."""

    suffixes: frozenset[str]
    """The last suffixes of its files, in lower case."""

    below: Callable[[str], Collection[str]]
    """Returns the names of the files in a subfolder."""

    def has(self, pattern: str) -> bool:
        """Return True if an expression matches the name of a file from start to end."""
        return any(map(re.compile(pattern).fullmatch, self.files))

    def head(self, name: str) -> bytes:
        """Return the first bytes of a file in the folder; none if it is not there or cannot be read."""
        with suppress(OSError):
            if name in self.files:
                with paths.open_file(os.path.join(self.path, name)) as file:
                    return file.read(_PEEKED_BYTES) or b""
        return b""


class OtherTool(Value, frozen=True):
    """One kind of dataset that another tool keeps in a folder."""

    name: str
    """The name of the dataset, as the object of a sentence."""

    way_out: str
    """The advice; ``DIR`` stands for the folder."""

    planned: bool = False
    """True if a later version is to read it."""

    keeps_old_rows: bool = False
    """True if its files may hold rows that are no longer in it, so that a part of them is refused too."""

    def refusal(self, folder: str, data: Sequence[str]) -> UnsupportedFormat:
        """Return the error that names the folder.

        Args:
            folder: the absolute path of the dataset.
            data: the files in it that could be opened as something else.
        """
        message = (
            f"{folder!r} is {self.name}, which cannot be opened{' yet' if self.planned else ''}: "
            f"{self.way_out.replace('DIR', folder)}"
        )
        if data and self.keeps_old_rows:
            message += (
                "; to read its files as they are, old rows too, name them in a list, or say format='parquet'"
            )
        elif data:
            message += "; to open some of its files for themselves, name them by a glob or a list"
        return UnsupportedFormat(message)


def find_files(
    asked: Asked,
    *,
    suffixes: Iterable[str],
    inspect: Inspect | None = None,
    arrange: Arrange | None = None,
    kind: str = _OF_SPEC,
) -> tuple[FoundFiles, ...]:
    """Return the data files of a source; see `seekable.storage.listing.find_files`.

    Args:
        asked: the path, folder, glob, address or list.
        suffixes: how names of data files in a folder end, in lower case, dot included.
        inspect: returns the files that are never data.
        arrange: returns the data files of a folder.
        kind: a text that differs where ``inspect`` and ``arrange`` choose otherwise: the name of a format,
            or ``PLAIN`` without one.

    Raises:
        DataNotFound: there is no such file or folder, or no data file in it.
        AccessDenied: it may not be listed.
        Unreachable: a store does not answer.
        UnsupportedFormat: a folder or a glob of a web server, which lists nothing.
        WrongType: the source is neither a path nor a list of paths.
    """
    if has_addresses(asked):
        return far().find(asked, suffixes=suffixes, inspect=inspect, arrange=arrange, kind=kind)
    return listing.find_files(asked, suffixes=suffixes, inspect=inspect, arrange=arrange)
