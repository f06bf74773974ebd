"""What this user may do, and what to tell whoever may not."""

from __future__ import annotations

import os
import stat

from seekable.errors import AccessDenied


def may(path: str, mode: int) -> bool:
    """Return whether this user may read, write or search something: as `os.access`, for the effective user.

    Args:
        path: the file or folder.
        mode: `os.R_OK`, `os.W_OK`, `os.X_OK`, or several of them.

    Example:
        >>> may("/no such file", os.R_OK)
        False
    """
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def unreadable(path: str) -> AccessDenied:
    """Return the error for a file or folder that this user may not read.

    Example:
        >>> str(unreadable("/secret/a.jsonl")).partition(";")[0].rpartition(" (")[0]
        "'/secret/a.jsonl' cannot be read by this user"
    """
    return AccessDenied(
        f"{path!r} cannot be read by this user (uid {os.geteuid()}): {_rights(path)}; "
        f"give the user the right to read it and to search the folders above it, or leave it out"
    )


def _rights(path: str) -> str:
    try:
        status = os.stat(path)
    except OSError:
        return "a folder above it may not be searched"
    return f"it has mode {stat.filemode(status.st_mode)} and belongs to uid {status.st_uid}"
