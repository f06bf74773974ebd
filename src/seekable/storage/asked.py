"""The sources that users name: a path, a folder, a glob, an address of a store, or a list of those."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from seekable.errors import WrongType

__all__ = ["PLAIN", "Asked", "address_of_path", "checked_asked", "has_addresses"]

_COLLAPSED = re.compile(r"(s3|gs|gcs|az|abfs|abfss|https?):/(?=[^/])", re.IGNORECASE)

PLAIN = "any"
"""The kind of a source that is neither a spec nor of a format that the user names."""

Asked = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""The sources of a user: a path, a folder, a glob, an address, or a list of those."""


def checked_asked(asked: object) -> Asked:
    """Return a source of a user, checked; of any collection that has a length and an order, a list.

    Raises:
        WrongType: the source is neither a path nor a list of paths. Iterators are none: some never end.
    """
    if isinstance(asked, (str, os.PathLike)):
        return asked
    # A set has no order, and the items of a dict and of bytes are no paths.
    if not isinstance(asked, Collection) or isinstance(asked, bytes | bytearray | AbstractSet | Mapping):
        hint = ": make a list of it, list(...)" if isinstance(asked, Iterator) else ""
        raise WrongType(f"data is given as a str, a path, or a list of those; got {asked!r:.200}{hint}")
    items: list[str | os.PathLike[str]] = []
    for item in asked:
        if not isinstance(item, str | os.PathLike):
            raise WrongType(f"a list of data holds strings and paths; got {item!r:.200}")
        items.append(item)
    return items


def address_of_path(path: object) -> str | None:
    """Return the address that a path object was made of, which took a slash away; None if there is none.

    Example:
        >>> address_of_path("s3:/bucket/a.jsonl"), address_of_path("corpus/a.jsonl")
        ('s3://bucket/a.jsonl', None)
    """
    if not isinstance(path, str) or (found := _COLLAPSED.match(path)) is None or os.path.lexists(path):
        return None
    return f"{found[1]}://{path[found.end() :]}"


def has_addresses(asked: object) -> bool:
    """Return True if a source, or an item of it, contains the address of a store.

    Example:
        >>> has_addresses("s3://bucket/a.jsonl"), has_addresses(["a.jsonl", "b.jsonl"])
        (True, False)
        >>> from pathlib import Path
        >>> has_addresses(Path("s3://bucket/a.jsonl"))
        True
    """
    if isinstance(asked, str):
        return "://" in asked
    if isinstance(asked, os.PathLike):
        return address_of_path(os.fspath(asked)) is not None
    if isinstance(asked, Mapping):
        return any(map(has_addresses, asked.values()))
    return isinstance(asked, list | tuple) and any(map(has_addresses, asked))
