"""Tables of Lance as a format of seekable: ``sk.open("table.lance")`` once this package is installed.

A table is a folder. The files of its folder ``_versions`` say which rows each version has, and are never
changed: the newest one is what seekable indexes, so a dataset stays the version that it was opened as, and a
run that goes on later reads the same rows. Rows are read by Lance's own ``take``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import lance

from seekable.errors import DataNotFound, InvalidArgument, UnsupportedFormat
from seekable.formats import Card, Claim, FoundFiles, Look, RowFormat, TableLayout

if TYPE_CHECKING:
    from collections.abc import Sequence

_VERSIONS = "_versions"
_NEWEST = (1 << 64) - 1
"""Of newer tables, a file is named by what is left from its version to this number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lance(RowFormat):
    """A table of Lance.

    Args:
        table_version: the version of the table; by default the newest one.

    Raises:
        DataNotFound: the table has no such version.
    """

    card: ClassVar[Card] = Card(name="lance", home="seekable_lance:Lance", suffixes=(".manifest",))

    table_version: int | None = None

    @classmethod
    def claim(cls, look: Look) -> Claim | None:
        """Return the file of the newest version, or of the version that the user asks for."""
        if not look.is_folder or _VERSIONS not in look.names:
            return None
        folder = os.path.abspath(look.path)
        asked = look.value if isinstance(look.value, cls) else cls()
        files = {
            _version(name): name
            for name in os.listdir(os.path.join(folder, _VERSIONS))
            if name.endswith(".manifest")
        }
        wanted = max(files, default=None) if asked.table_version is None else asked.table_version
        if wanted not in files:
            message = f"{folder!r} has no version {wanted}; there are {sorted(files)}"
            raise DataNotFound(message)
        # The file says which version it is, so that the option is no part of the fingerprint.
        found = FoundFiles(folder, (os.path.join(_VERSIONS, files[wanted]),))
        return Claim(format=replace(asked, table_version=None), found=(found,))

    @property
    def finder(self) -> Versions:
        """What counts the rows of a version."""
        return Versions()

    def read_rows(self, path: str, rows: Sequence[int], columns: Sequence[str] | None) -> Sequence[Any]:
        """Return some rows as dicts of Python values."""
        table = _table(path, os.getpid())
        names = None if columns is None else list(columns)
        if names is not None and (unknown := set(names) - set(table.schema.names)):
            message = f"{path!r} has no column {min(unknown)!r}; there are {', '.join(table.schema.names)}"
            raise InvalidArgument(message)
        taken: list[Any] = table.take(list(rows), columns=names).to_pylist()
        return taken


@dataclass(frozen=True, slots=True)
class Versions:
    """Counts the rows of a version of a table, by its fragments."""

    name: str = "lance"

    def read_layout(self, source: Any) -> TableLayout:
        """Return the rows of each fragment.

        Raises:
            UnsupportedFormat: Lance cannot read the version.
        """
        try:
            table = _table(source.path, os.getpid())
            counts = tuple(fragment.count_rows() for fragment in table.get_fragments())
            return TableLayout(counts, table.schema.serialize().to_pybytes())
        except (ValueError, OSError, RuntimeError) as error:
            message = f"{source.path!r} is no version of a table that Lance can read: {error}"
            raise UnsupportedFormat(message) from error


def _version(name: str) -> int:
    """Return the version of a file of ``_versions``."""
    number = int(name.removesuffix(".manifest"))
    return _NEWEST - number if number > _NEWEST >> 1 else number


@lru_cache(maxsize=16)
def _table(path: str, process: int) -> Any:  # noqa: ARG001 - a table is opened anew in a forked child
    folder, name = os.path.split(path)
    return lance.dataset(os.path.dirname(folder), version=_version(name))
