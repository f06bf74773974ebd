"""Globs over the keys of a store, and all keys below a folder, by few requests that are sent many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from seekable.remote.listing import folder
from seekable.remote.listing.known import FolderListing, ListedFiles, known_listings
from seekable.storage.file_names import INDEX_FOLDER
from seekable.storage.listing import MAGIC, RECURSIVE, matcher

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    _Columns = tuple[list[str], list[int], list[int]]

__all__ = ["files_below", "matches", "split_glob"]

_FEWEST_SPANS = 16
"""Folders are listed level by level until there are so many, which then are listed whole, at once."""

_FEWEST_IN_SPAN = 1000
"""A part of a folder that is listed by itself has at least a page of names."""

_SAMPLED_OF_SPAN = 64

_MOST_LEVELS = 3


def files_below(path: str) -> ListedFiles:
    """Return the sizes and identities of all files below a folder, by their paths relative to it.

    Those of published indexes are left out.

    Raises:
        DataNotFound: there is no such bucket.
        AccessDenied, Unreachable: it cannot be listed.
    """
    known = known_listings()
    if found := known.below(path):
        return found
    if bounds := _bounds(known.earlier(path)):
        parts = folder.keys_below(path, [""], bounds)
        files = _joined_parts(parts)
        own = f"{INDEX_FOLDER}/"
        if any(name.startswith(own) or f"/{own}" in name for name in files):
            files = files.taken([name for name in files if f"/{own}" not in f"/{name}"])
        files = folder.without_markers(files)
    else:
        files = _files_of_folders(path)
    known.add_all_below(path, files)
    return files


def _files_of_folders(path: str) -> ListedFiles:
    """Return all files below a folder, from listings of folders below it that are sent at once."""
    files = ListedFiles()
    folders = [""]
    for _ in range(_MOST_LEVELS):
        listings = folder.listed_each([_joined(path, inner) for inner in folders])
        pairs = [(inner, listings[_joined(path, inner)]) for inner in folders]
        for inner, each in pairs:
            sizes, identities = each.files.columns(each.files.names)
            files.extend((_joined(inner, name) for name in each.files), sizes.tolist(), identities.tolist())
        folders = [
            _joined(inner, name) for inner, each in pairs for name in each.folders if name != INDEX_FOLDER
        ]
        if not folders or len(folders) >= _FEWEST_SPANS:
            break
    for part in folder.keys_below(path, folders):
        files.add(folder.without_markers(part))
    return files


def _joined_parts(parts: Sequence[ListedFiles]) -> ListedFiles:
    files = ListedFiles()
    for part in parts:
        files.add(part)
    return files


def _bounds(names: Sequence[str]) -> list[str]:
    """Return names that cut a listing into parts of about equal size; none for few names."""
    if len(names) < _FEWEST_SPANS * _FEWEST_IN_SPAN:
        return []
    step = len(names) // (_FEWEST_SPANS * _SAMPLED_OF_SPAN)
    sample = sorted(names[::step], key=lambda name: name.encode("utf-8", "surrogateescape"))
    return sample[_SAMPLED_OF_SPAN::_SAMPLED_OF_SPAN][: _FEWEST_SPANS - 1]


def split_glob(path: str) -> tuple[str, list[str]]:
    """Return the folder that a glob begins in, and the parts of the glob below it.

    A part that is the name of a file or a folder stands for itself; a path without other parts has no parts.

    Raises:
        DataNotFound: there is no such bucket.
        AccessDenied, Unreachable: it cannot be listed.
    """
    scheme, _, rest = path.partition("://")
    bucket, *parts = rest.split("/")
    root = f"{scheme}://{bucket}"
    for number, part in enumerate(parts):
        if MAGIC.search(part):
            here = folder.listed(root)
            if part not in here.folders and (number + 1 < len(parts) or part not in here.files):
                return root, parts[number:]
        root = f"{root}/{part}"
    return root, []


def matches(root: str, parts: Sequence[str], suffixes: tuple[str, ...], passed: list[str]) -> set[str]:
    """Return the files below a folder that the parts of a glob match, relative to it.

    Args:
        root: the folder.
        parts: the parts of the glob.
        suffixes: the suffixes of data, which match in letters of any case.
        passed: gets the other files, and the folders, that lie beside those files.
    """
    return _matches(_Tree(root), [""], parts, suffixes, passed)


@final
class _Tree:
    """The folders below a root, each listed when it is first needed."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._listings: dict[str, FolderListing] = {}

    def expect(self, folders: Iterable[str]) -> None:
        """List some folders at once."""
        missing = [each for each in folders if each not in self._listings]
        found = folder.listed_each([_joined(self._root, each) for each in missing])
        self._listings |= {each: found[_joined(self._root, each)] for each in missing}

    def expect_all(self, folders: Iterable[str]) -> None:
        """List some folders with all folders below them."""
        for top in folders:
            files = files_below(_joined(self._root, top))
            columns = (column.tolist() for column in files.columns(files.names))
            inner: dict[str, tuple[dict[str, None], _Columns]] = {top: ({}, ([], [], []))}
            for name, size, identity in zip(files, *columns, strict=True):
                above, _, base = _joined(top, name).rpartition("/")
                if above not in inner:
                    _add_folder(inner, above)
                names, sizes, identities = inner[above][1]
                names.append(base)
                sizes.append(size)
                identities.append(identity)
            for each, (found, of_folder) in inner.items():
                listed = ListedFiles()
                listed.extend(*of_folder)
                self._listings[each] = FolderListing(tuple(found), listed)

    def at(self, path: str) -> FolderListing:
        """Return the listing of a folder."""
        return self._listings[path]

    def below(self, path: str) -> Iterator[str]:
        """Yield the folders below a folder that do not begin with a dot."""
        for name in self.at(path).folders:
            if not name.startswith("."):
                inner = _joined(path, name)
                yield inner
                yield from self.below(inner)


def _matches(
    tree: _Tree, folders: Sequence[str], parts: Sequence[str], suffixes: tuple[str, ...], passed: list[str]
) -> set[str]:
    part, rest = parts[0], parts[1:]
    if part == RECURSIVE:
        tree.expect_all(folders)
        every = [each for top in folders for each in (top, *tree.below(top))]
        return _matches(tree, list(dict.fromkeys(every)), rest or ["*"], suffixes, passed)
    tree.expect(folders)
    is_match = matcher(part, () if rest else suffixes)
    inner: list[str] = []
    found: set[str] = set()
    for top in folders:
        here = tree.at(top)
        for names, is_file in ((here.folders, False), (here.files, True)):
            for name in names:
                fits = is_match(name) and (part.startswith(".") or not name.startswith("."))
                path = _joined(top, name)
                if rest:
                    inner += [path] if fits and not is_file else []
                elif fits and is_file:
                    found.add(path)
                else:
                    passed.append(path)
    return _matches(tree, inner, rest, suffixes, passed) if inner else found


def _add_folder(tree: dict[str, tuple[dict[str, None], _Columns]], path: str) -> None:
    """Add a folder to a tree, and those above it up to one that the tree has."""
    if path not in tree:
        tree[path] = ({}, ([], [], []))
        above, _, base = path.rpartition("/")
        _add_folder(tree, above)
        tree[above][0][base] = None


def _joined(above: str, name: str) -> str:
    return f"{above}/{name}" if above and name else above or name
