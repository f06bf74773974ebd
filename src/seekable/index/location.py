"""The location of a record, and the names of files in messages."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from seekable._lazy import lazy
from seekable.index.index_location import is_remote, may_hold_placeholders
from seekable.storage.far import far

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.storage import addresses
else:
    addresses = lazy("seekable.storage.addresses")


@dataclass(frozen=True, slots=True, repr=False)
class Location:
    """The file and the bytes of one record.

    Example:
        >>> where = Location("/data/a.jsonl", row=2, offset=40, length=12)
        >>> f"tail -c +{where.offset + 1} {where.path} | head -c {where.length}"
        'tail -c +41 /data/a.jsonl | head -c 12'
    """

    path: str
    """The absolute path of the file; of one on the Hugging Face Hub, its name there, ``hf://datasets/...``."""

    row: int
    """The row of the record in that file, from 0."""

    offset: int
    """The first byte of the record in the file; in the content, if the file is compressed."""

    length: int
    """The size of the record in bytes, without the end of its line."""

    source: Location | None = None
    """Of a document of a token store, the location of the record that it was made of; its offset and length
    are 0 where no index of its file has them. None for all other records."""

    is_shared: bool = field(default=False, compare=False)
    """True if the bytes hold other records too: a row of a table has those of its group, an item of a record
    those of the record."""

    def __repr__(self) -> str:
        """Show the fields; ``source`` and ``is_shared`` only where they say something."""
        source = "" if self.source is None else f", source={self.source!r}"
        source += ", is_shared=True" if self.is_shared else ""
        place = f"row={self.row!r}, offset={self.offset!r}, length={self.length!r}"
        return f"{type(self).__name__}(path={self.path!r}, {place}{source})"


def shared(place: Any) -> Any:
    """Return a place, nested as a record may be, whose bytes hold other records too."""
    if isinstance(place, list | tuple):
        return type(place)(map(shared, place))
    return replace(place, is_shared=True) if isinstance(place, Location) else place


def shown_path(path: str) -> str:
    """Return the name of a file in messages: its path, or its address in a store or on the Hub."""
    if "://" in path:
        return addresses.shown(path)
    return far().placeholders.shown(path) if may_hold_placeholders(path) else path


def path_of_shown(roots: Sequence[str], path: str) -> str:
    """Return the path of a file by its name in messages; any other path comes back as it is.

    Args:
        roots: the roots of the files, of which some lie elsewhere.
        path: the name of a file in messages; see `shown_path`.
    """
    if "://" not in path:
        return path
    path = addresses.shown(path)
    for root in dict.fromkeys(roots):
        shown = f"{addresses.shown(root)}/" if "://" in root else ""
        if shown and path.startswith(shown):
            return f"{root}/{path[len(shown) :]}"
    return far().placeholders.path_of_shown(roots, path) if any(map(is_remote, roots)) else path
