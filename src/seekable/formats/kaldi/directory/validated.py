"""Data directories that were found valid: they are validated once for each content of their tables."""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Final

import xxhash

from seekable.errors import CorruptTable
from seekable.formats.kaldi.directory.validation import validate_directory
from seekable.storage.files import regular_only, write_atomically

if TYPE_CHECKING:
    from seekable.index.fileset import FileSet

__all__ = ["REMEMBERED", "check_directory"]

REMEMBERED: Final = "kaldi-directory.json"
"""The name of the file, in the index folder, that has the digest of tables that were found valid."""

_RULES: Final = 1
"""The version of the rules; tables that were valid by other rules are validated again."""

_MOST_SHOWN: Final = 10


def check_directory(files: FileSet) -> None:
    """Validate the tables of a data directory, unless they are as they were when they were found valid.

    Args:
        files: the tables, all in one folder.

    Raises:
        CorruptTable: the directory has an error; the message lists the first ones.
    """
    path = os.path.join(files.folders[0], REMEMBERED)
    digest = _digest(files)
    if _remembered(path) == digest:
        return
    folder = os.path.dirname(files.path(0))
    errors = [problem for problem in validate_directory(folder) if problem.level == "error"]
    if errors:
        shown = "".join(f"\n  {problem}" for problem in errors[:_MOST_SHOWN])
        more = f"\n  and {len(errors) - _MOST_SHOWN:,} more" if len(errors) > _MOST_SHOWN else ""
        message = (
            f"the data directory {folder!r} is not valid, and a record of it could be a wrong one; mend it, "
            f"or let Kaldi's utils/fix_data_dir.sh do so:{shown}{more}"
        )
        raise CorruptTable(message)
    document = json.dumps({"seekable_kaldi_directory": _RULES, "valid": digest}) + "\n"
    # A folder that cannot be written costs a validation at each opening, and nothing else.
    with contextlib.suppress(OSError):
        write_atomically(path, document.encode())


def _digest(files: FileSet) -> str:
    hasher = xxhash.xxh3_64(json.dumps([_RULES, files.names()]).encode())
    hasher.update(files.contents.tobytes())
    return hasher.hexdigest()


def _remembered(path: str) -> str | None:
    try:
        with open(path, "rb", opener=regular_only) as file:
            return str(json.load(file)["valid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
