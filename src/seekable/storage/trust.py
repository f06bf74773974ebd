"""The indexes that are taken, and the files that a list may name: a rule each, for data of strangers.

- *An index* decides which bytes are a record, and its digests prove damage, not origin. So a folder of an
  index beside the data is used if it is not a link, and belongs to root, to this user, or to the owner of the
  folder of the data. A folder that the user names is used as it is.
- *A list* of files that comes with the data (shards of Energon and of wids, a script of Kaldi in a store)
  names files of its own folder or below, in the same store. What lies elsewhere is read where the call says
  so: where it names these files itself, allows their folder (`checked_allow`), or with ``root=`` of
  ``load_pipeline``. Scripts of Kaldi, packs of Lhotse and pipeline files on this machine name any file of
  this machine, as they always did; a pipeline file no other address.
"""

from __future__ import annotations

import os
import posixpath
import stat
from typing import TYPE_CHECKING

from seekable.errors import AccessDenied, InvalidArgument, UnsupportedFormat, WrongType

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


def check_no_link(path: str) -> None:
    """Check that a folder of an index, if it is there, is a folder and no link to one.

    Raises:
        AccessDenied: it is a link, or no folder.
    """
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return
    if stat.S_ISDIR(mode):
        return
    what = "is a link" if stat.S_ISLNK(mode) else "is not a folder"
    raise AccessDenied(
        f"{path!r} {what}, and an index is neither read nor written through it: whoever made it would choose "
        f"the folder in which files are written and removed. Remove it, or name the folder of the index with "
        f"sk.Index(folder=)"
    )


def untrusted_owner(path: str, *, data: str) -> int | None:
    """Return the user id that owns the folder of an index, None if its index may be used.

    It may be used if it is not there, or belongs to root, to this user, or to the owner of the data.

    Args:
        path: the folder of the index.
        data: the folder of the data.

    Example:
        >>> untrusted_owner("/no such folder/.seekable", data="/") is None
        True
    """
    try:
        owner = os.lstat(path).st_uid
        return None if owner in {0, os.geteuid(), os.stat(data).st_uid} else owner
    except OSError:
        return None


def is_below(path: str, folder: str) -> bool:
    """Return True if a path or an address is below a folder or the address of one, whatever ``..`` it has.

    Links of the file system are not followed: who made them could write there.

    Example:
        >>> is_below("/data/a/../b.tar", "/data"), is_below("/data/../b.tar", "/data")
        (True, False)
        >>> is_below("s3://other/data/b.tar", "s3://mine/data"), is_below("/etc/passwd", "https://host/data")
        (False, False)
    """
    return _plain(path).startswith(f"{_plain(folder).rstrip('/')}/")


def checked_allow(allow: object) -> tuple[str, ...]:
    """Return the folders and files of an argument ``allow``, as absolute paths and addresses.

    Raises:
        WrongType: it is neither a path nor a list of paths.
        InvalidArgument: a path is empty, a pattern, or has all files of this machine or of a kind of store
            below it.

    Example:
        >>> checked_allow(["/data/../shards", "s3://bucket/shards/"]), checked_allow(None)
        (('/shards', 's3://bucket/shards'), ())
    """
    if allow is None:
        return ()
    given = [allow] if isinstance(allow, str | os.PathLike) else allow
    if not isinstance(given, list | tuple) or not all(isinstance(each, str | os.PathLike) for each in given):
        message = f"allow must be a folder, an address, or a list of those (got {allow!r:.200})"
        raise WrongType(message)
    return tuple(map(_checked_place, map(os.fsdecode, given)))


def _checked_place(given: str) -> str:
    path = given.rstrip("/") if "://" in given else os.path.abspath(os.path.expanduser(given))
    bucket = path.partition("://")[2]
    if not given or "*" in given or path == "/" or ("://" in given and bucket.strip("/.") == ""):
        message = (
            f"allow takes folders and files that lists may name, or addresses of those, and neither all "
            f"files of a machine nor a pattern (got {given!r})"
        )
        raise InvalidArgument(message)
    return path


def named_path(name: str, folder: str) -> str:
    """Return the path or the address of a file that a list names.

    Dots are resolved by name, as `check_below` does, and not by the links that folders may be.

    Args:
        name: the name in the list: relative to the folder, absolute, or an address.
        folder: the folder of the list, or its address.

    Example:
        >>> named_path("../b.tar", "/data/set"), named_path("../b.tar", "s3://bucket/set")
        ('/data/b.tar', 's3://bucket/b.tar')
    """
    path = name if "://" in name else os.path.join(folder, name)
    scheme, mark, rest = path.partition("://")
    if not mark:
        return os.path.abspath(path)
    return path if path is name else f"{scheme}://{posixpath.normpath(rest)}"


def check_below(
    name: str, folders: Iterable[str], *, by: str, way_out: str, allow: Collection[str] = ()
) -> None:
    """Check that a file that a list names lies below the folder of the list, or where the call allows it.

    Args:
        name: the name in the list: relative to the folder, absolute, or an address.
        folders: the folder of the list, or its address; several, where lists of several folders are read.
        by: the list, for messages.
        way_out: what the user can do besides to have the file read, for messages.
        allow: the folders and files that the call allows, of `checked_allow`.

    Raises:
        UnsupportedFormat: the file is not below a folder, in the same store.

    Example:
        >>> check_below("train/a.tar", ["/data/set"], by="'index.json'", way_out="Open the files themselves")
    """
    for folder in folders:
        path = name if "://" in name else os.path.join(folder, name)
        places = (folder, *allow)
        if "\0" not in name and (_plain(path) in allow or any(is_below(path, each) for each in places)):
            return
    raise UnsupportedFormat(
        f"{by} names {name!r}, which is not below {' or '.join(map(repr, folders))}: a list names only files "
        f"that lie below its own folder, in the same store. If you know who made it, "
        f"index=sk.Index(allow=FOLDER) permits files below another one, too. {way_out}"
    )


def _plain(path: str) -> str:
    """Return a path or an address without dots and repeated slashes; an empty text if it leads too far up."""
    scheme, mark, rest = path.partition("://")
    if not mark:
        return os.path.abspath(path)
    # To some servers an encoded slash or dot is one.
    for encoded, character in (("%2e", "."), ("%2f", "/"), ("%5c", "/"), ("\\", "/")):
        rest = rest.replace(encoded, character).replace(encoded.upper(), character)
    place, _, key = rest.partition("/")
    if scheme.lower() in ("http", "https"):
        place, key = place.lower(), key.partition("?")[0].partition("#")[0]
    key = posixpath.normpath(key.lstrip("/"))
    if key == ".." or key.startswith("../"):
        return ""
    return f"{scheme.lower()}://{place}/{'' if key == '.' else key}"
