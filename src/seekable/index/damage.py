"""A file of the index that turns out to be damaged: it is removed, so that the next opening builds it."""

from __future__ import annotations

import os

from seekable.errors import IndexStale

__all__ = ["damaged_error"]


def damaged_error(path: str, what: str) -> IndexStale:
    """Remove a damaged file of the index, if this user may do so, and return the error that says so.

    Opening looks whether the files of the index are there, which takes no time, and builds again what is not.

    Args:
        path: the file.
        what: what it is, and how it is damaged.
    """
    done = "it was removed: open the dataset again, which builds it again"
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        done = (
            f"it cannot be removed ({error.strerror}): have it removed, or name another folder with "
            f"index_dir=, and open the dataset again"
        )
    return IndexStale(f"{path!r}, {what}; {done}")
