"""The pointers that Git LFS leaves in the place of files that were not fetched."""

from __future__ import annotations

from seekable.errors import UnsupportedFormat

__all__ = ["refuse_lfs_pointer"]

_BEGINS = (b"version https://git-lfs.github.com/spec/", b"version https://hawser.github.com/spec/")
"""The first bytes of pointers; of the second kind are those of the first releases."""


def refuse_lfs_pointer(head: bytes, path: str) -> None:
    """Refuse a file that is a pointer of Git LFS.

    Args:
        head: the first bytes of the file.
        path: the name of the file in error messages.

    Raises:
        UnsupportedFormat: it is one.

    Example:
        >>> refuse_lfs_pointer(b'{"id": 1}', "a.jsonl")
    """
    if head.startswith(_BEGINS):
        message = (
            f"{path!r} is a pointer of Git LFS, and not the data: fetch the data with `git lfs pull` in the "
            f"repository, or download the file from where the repository came from"
        )
        raise UnsupportedFormat(message)
