"""The data files that a source names, on this machine or in stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable._lazy import lazy
from seekable.storage import listing
from seekable.storage.asked import has_addresses

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seekable.remote.listing import find
    from seekable.storage.asked import Asked
    from seekable.storage.listing import Arrange, Found, Inspect
else:
    find = lazy("seekable.remote.listing.find")

__all__ = ["find_files"]


def find_files(
    asked: Asked,
    *,
    suffixes: Iterable[str],
    inspect: Inspect | None = None,
    arrange: Arrange | None = None,
    kind: str = "",
) -> tuple[Found, ...]:
    """Return the data files of a source; see `seekable.storage.listing.find_files`.

    Args:
        asked: the path, folder, glob, address or list.
        suffixes: how names of data files in a folder end, in lower case, dot included.
        inspect: returns the files that are never data.
        arrange: returns the data files of a folder.
        kind: a text that differs where ``inspect`` and ``arrange`` choose otherwise: the name of a format.

    Raises:
        DataNotFound: there is no such file or folder, or no data file in it.
        AccessDenied: it may not be listed.
        Unreachable: a store does not answer.
        UnsupportedFormat: a folder or a glob of a web server, which lists nothing.
        WrongType: the source is neither a path nor a list of paths.
    """
    if has_addresses(asked):
        return find.find_files(asked, suffixes=suffixes, inspect=inspect, arrange=arrange, kind=kind)
    return listing.find_files(asked, suffixes=suffixes, inspect=inspect, arrange=arrange)
