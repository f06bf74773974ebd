"""The data files of a pipeline file: their folders, names and digests, and how they are found again.

Files of one folder stand together. A folder is written as it was opened, and relative to the pipeline file,
so that data and pipeline may be moved together; files of the Hub are written by repository and commit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from seekable._arguments import checked_path
from seekable._lazy import lazy
from seekable.dataset.pipeline.fields import checked
from seekable.errors import CorruptState, DataNotFound, WrongType
from seekable.index.index_location import hub_folder, is_remote
from seekable.index.location import shown_path
from seekable.storage.far import far
from seekable.storage.listing import FoundFiles
from seekable.storage.trust import is_below

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.index.fileset import FileSet
    from seekable.storage import addresses
    from seekable.storage.access import Storage
else:
    addresses = lazy("seekable.storage.addresses")

__all__ = ["Roots", "files_as_json", "found_files", "mounted", "saved_entries"]


_REPO = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")


def mounted(address: str, reach: Storage) -> str:
    """Return the address under which the files of a folder are named."""
    return far().mount(address, reach.options, reach.filesystem) if reach.is_for_stores else address


class _SavedFile(msgspec.Struct, omit_defaults=True):
    """A file by name, and what it was like when the pipeline was saved."""

    name: str
    size: int
    records: int
    head_tail: str
    offsets: str
    hub_size: int | None = None
    etag: str | None = None


class _Folder(msgspec.Struct, omit_defaults=True):
    """Consecutive files in one folder, or in one commit of a repository on the Hub."""

    files: list[_SavedFile]
    folder: str | None = None
    relative: str | None = None
    hub: str | None = None
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class Roots:
    """The folders in which data files are looked for, besides those of the pipeline file."""

    beside: str
    """The folder of the pipeline file."""

    moved: tuple[tuple[str, str], ...]
    """Folders as they were saved, and as they are now; an empty one stands for any saved folder."""

    index_dir: str | os.PathLike[str] | None

    reach: Storage

    allow: tuple[str, ...]
    """The folders at which data is also looked for where it was, of addresses."""

    @classmethod
    def of(
        cls,
        beside: str,
        root: object,
        index_dir: str | os.PathLike[str] | None,
        reach: Storage,
        allow: tuple[str, ...],
    ) -> Roots:
        """Return the folders that the argument ``root`` of ``load_pipeline`` names.

        Raises:
            WrongType: ``root`` is neither a path nor a list or dict of paths.
        """
        is_many = isinstance(root, Iterable) and not isinstance(root, str)
        given: Any = root if is_many else [] if root in (None, "") else [root]
        pairs = list(given.items()) if isinstance(given, Mapping) else [("", each) for each in given]
        if not all(isinstance(path, str | os.PathLike) for pair in pairs for path in pair):
            message = (
                f"root must be a folder, a list of folders, or a dict of old and new ones (got {root!r})"
            )
            raise WrongType(message)
        moved = tuple((_absolute(old) if old else "", _absolute(new)) for old, new in pairs)
        return cls(beside, moved, index_dir, reach, allow)

    def candidates(self, folder: _Folder) -> Iterator[str]:
        """Yield the folders in which some files may be, the most likely one first."""
        return (mounted(root, self.reach) if "://" in root else root for root in self._folders(folder))

    def is_followed(self, saved: str) -> bool:
        """Return True if files are looked for where they were: not in a store that the call does not name."""
        places = (self.beside, *self.allow)
        return "://" not in saved or any(is_below(f"{saved}/file", place) for place in places)

    def _folders(self, folder: _Folder) -> Iterator[str]:
        saved = folder.folder or ""
        for old, new in self.moved:
            if not old:
                yield new
            elif saved == old or saved.startswith(os.path.join(old, "")):
                inner = saved[len(old) :].strip("/")
                yield os.path.join(new, inner) if inner else new
        if self.is_followed(saved):
            yield saved
        if folder.relative is not None and "://" not in self.beside:
            yield os.path.normpath(os.path.join(self.beside, folder.relative))


def files_as_json(files: FileSet, beside: str) -> list[dict[str, Any]]:
    """Return the files of a source, by folder.

    Args:
        files: the files.
        beside: the folder of the pipeline file.
    """
    entries = iter(files.described())
    folders = []
    first = 0
    for root, _, count in files.runs:
        own = [_SavedFile(**next(entries)) for _ in range(count)]
        if is_remote(root):
            folders.append(_hub_files(files, first, own))
        else:
            is_address = "://" in root
            folders.append(
                _Folder(
                    own,
                    folder=addresses.shown(root) if is_address else root,
                    relative=None if is_address or "://" in beside else os.path.relpath(root, beside),
                )
            )
        first += count
    made: list[dict[str, Any]] = msgspec.to_builtins(folders)
    # The folder before its files, which may be many.
    return [{**{key: each[key] for key in each if key != "files"}, "files": each["files"]} for each in made]


def _hub_files(files: FileSet, first: int, own: list[_SavedFile]) -> _Folder:
    hub, revision = "", ""
    for number, entry in enumerate(own, start=first):
        hub, revision, entry.hub_size, entry.etag = far().placeholders.original(files.path(number))
    return _Folder(own, hub=hub, revision=revision)


def saved_entries(document: Any, where: str) -> list[dict[str, Any]]:
    """Return the description of each file of a source as it was saved.

    Raises:
        CorruptState: the document is not what `files_as_json` wrote.
    """
    described = ("name", "size", "records", "head_tail", "offsets")
    return [
        {key: getattr(file, key) for key in described}
        for folder in checked(document, list[_Folder], where)
        for file in folder.files
    ]


def found_files(document: Any, roots: Roots, where: str) -> list[FoundFiles]:
    """Return the files of a source, where they are now.

    Raises:
        DataNotFound: a file is in none of the folders.
        CorruptState: the document is not what `files_as_json` wrote.
    """
    return [
        _from_hub(folder, roots, where) if folder.hub is not None else _from_folder(folder, roots, where)
        for folder in checked(document, list[_Folder], where)
    ]


def _from_folder(folder: _Folder, roots: Roots, where: str) -> FoundFiles:
    plain = [_checked_name(file.name, where) for file in folder.files]
    there: list[FoundFiles] = []
    lacking: list[str] = []
    for root in dict.fromkeys(filter(None, roots.candidates(folder))):
        names = tuple(addresses.name_in_url(root, name) for name in plain)
        sizes = _sizes(root, names)
        if None in sizes:
            lacking.append(f"{shown_path(root)!r} has no {names[sizes.index(None)]!r}")
            continue
        if all(size == file.size for size, file in zip(sizes, folder.files, strict=True)):
            return FoundFiles(root, names)
        there.append(FoundFiles(root, names))
    if there:
        return there[0]  # It has other files of these names: which ones, the caller says.
    saved = folder.folder or ""
    if saved and not roots.is_followed(saved):
        lacking.append(
            f"{shown_path(saved)!r}, which the file names, is not followed: a pipeline file names addresses "
            f"only below its own. allow={shown_path(saved)!r} follows it, if you know who made the file"
        )
    message = f"{where}: {'; '.join(lacking) or 'no folder is named'}. Say where the files are now with root="
    raise DataNotFound(message)


def _sizes(root: str, names: Sequence[str]) -> list[int | None]:
    """Return the number of bytes of each file below a folder, None where there is no file."""
    if "://" in root:
        return far().sizes(root, names)
    paths = [os.path.join(root, name) for name in names]
    return [os.stat(path).st_size if os.path.isfile(path) else None for path in paths]


def _absolute(path: str | os.PathLike[str]) -> str:
    """Return an address as it is, and the absolute path of a local folder."""
    text = checked_path(path)
    return text.rstrip("/") if "://" in text else os.path.abspath(os.path.expanduser(text))


def _from_hub(folder: _Folder, roots: Roots, where: str) -> FoundFiles:
    repo, revision = str(folder.hub), str(folder.revision)
    if not _REPO.fullmatch(repo) or not _COMMIT.fullmatch(revision) or "--" in repo or ".." in repo:
        message = f"{where}: expected a repository of the Hub and a commit (got {repo!r} and {revision!r})"
        raise CorruptState(message)
    names = tuple(_checked_name(file.name, where) for file in folder.files)
    sizes = [(file.hub_size or 0, file.etag or "") for file in folder.files]
    files = [(name, *facts) for name, facts in zip(names, sizes, strict=True)]
    return FoundFiles(far().placeholders.write(hub_folder(roots.index_dir), repo, revision, files), names)


def _checked_name(name: str, where: str) -> str:
    """Return the name of a file, which must lie below its folder.

    Raises:
        CorruptState: it does not.
    """
    if os.path.isabs(name) or not {"", ".."}.isdisjoint(name.split("/")):
        message = f"{where}: expected the name of a file below its folder (got {name!r})"
        raise CorruptState(message)
    return name
