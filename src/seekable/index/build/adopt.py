"""Entries of other indexes, taken over for files that are the same: these are not scanned again.

Each commit of a repository has a folder of placeholders, and an index, of its own. Most commits change few
files, and a placeholder names the content of its file. So the entry that another commit has for an equal
placeholder is valid for this one. Segments of offsets, seek points and schemas never change: they are linked.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from typing import TYPE_CHECKING

from seekable.errors import AccessDenied
from seekable.index.build.commit import add_entries, companions_of, folder_lock, make_folder
from seekable.index.catalog import read_table, whole_segments
from seekable.index.digest import END_BYTES, head_tail_digest
from seekable.index.index_location import find_index, index_in
from seekable.storage.files import TEMPORARY_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seekable.index.entry import Entry
    from seekable.storage.listing import Found

__all__ = ["adopt_entries"]


def adopt_entries(run: Found, *, format_name: str, index_dir: str | os.PathLike[str] | None) -> None:
    """Add the entries of equal files from the indexes of sibling folders to the index of a folder.

    Nothing is done if the index has all files already, or cannot be written.

    Args:
        run: the files.
        format_name: the name of the format that they are scanned as.
        index_dir: the user's folder for indexes, if any.
    """
    folder = find_index(run.root, index_dir=index_dir).folder
    table = read_table(folder)
    names = list(run.names)
    if table is not None:
        rows = table.rows(names, format_name=format_name).tolist()
        names = [name for name, row in zip(names, rows, strict=True) if row < 0]
    if not names:
        return
    found: dict[str, tuple[str, Entry]] = {}
    for donor in _siblings(run.root):
        missing = [name for name in names if name not in found]
        if not missing:
            break
        found |= {entry.name: (donor, entry) for entry in _equal(donor, run.root, missing, format_name)}
    if not found:
        return
    with contextlib.suppress(AccessDenied):
        make_folder(folder)
        _adopt(folder, found.values())


def _siblings(root: str) -> Iterator[str]:
    """Yield the index folders of the other folders beside a root, the newest first."""
    with os.scandir(os.path.dirname(root)) as entries:
        folders = [entry.path for entry in entries if entry.is_dir() and entry.path != root]
    indexes = [index_in(folder) for folder in folders]
    found = [(os.stat(folder).st_mtime_ns, folder) for folder in indexes if os.path.isdir(folder)]
    for _, folder in sorted(found, reverse=True):
        yield folder


def _equal(donor: str, root: str, names: list[str], format_name: str) -> Iterator[Entry]:
    """Yield the entries of an index for the files of a root that have the same size, time and ends."""
    table = read_table(donor)
    if table is None:
        return
    whole = dict(zip(table.segments, whole_segments(donor, table).tolist(), strict=True))
    entries = table.entries()
    for row in table.rows(names, format_name=format_name).tolist():
        if (
            row >= 0
            and whole[entries[row].segment]
            and _is_of(os.path.join(root, entries[row].name), entries[row])
        ):
            yield entries[row]


def _is_of(path: str, entry: Entry) -> bool:
    """Return True if a file has the size, the time and the ends of an entry."""
    with open(path, "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        if (status.st_size, status.st_mtime_ns) != (entry.size, entry.mtime_ns):
            return False
        head = os.pread(file.fileno(), END_BYTES, 0)
        return head_tail_digest(file.fileno(), size=status.st_size, head=head) == entry.head_tail


def _adopt(folder: str, found: Iterable[tuple[str, Entry]]) -> None:
    with folder_lock(folder):
        fresh = []
        for donor, entry in found:
            try:
                for name in (entry.segment.file_name, *sorted(companions_of([entry]))):
                    _link(os.path.join(donor, name), os.path.join(folder, name))
            except FileNotFoundError:
                continue  # The other index was removed meanwhile: the file is scanned.
            fresh.append(entry)
        if fresh:
            add_entries(folder, fresh)


def _link(source: str, target: str) -> None:
    """Give a file a second name, or copy it where that is impossible."""
    if os.path.exists(target):
        return
    try:
        os.link(source, target)
    except FileExistsError:
        return
    except FileNotFoundError:
        if os.path.basename(source).startswith(("pages-", "digests-")):
            return  # An index may lack page tables, and digests of objects.
        raise
    except OSError:
        temporary = f"{target}.{secrets.token_hex(8)}{TEMPORARY_SUFFIX}"
        shutil.copyfile(source, temporary)
        os.replace(temporary, target)
