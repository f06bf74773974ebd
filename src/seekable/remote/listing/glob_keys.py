"""Globs over the keys of a store, and all keys below a folder, by few requests that are sent many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from seekable.remote.listing import folder
from seekable.remote.listing.known import FolderListing, known_listings
from seekable.storage.listing import MAGIC, RECURSIVE, matcher

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from seekable.remote.listing.known import Status

__all__ = ["files_below", "matches", "split_glob"]

_FEWEST_SPANS = 16
"""Folders are listed level by level until there are so many, which then are listed whole, at once."""

_MOST_LEVELS = 3

INDEX_FOLDER = ".seekable"
"""The folder of a published index, which may be closed to readers of the data."""


def files_below(path: str) -> Mapping[str, Status]:
    """Return the sizes and identities of all files below a folder, by their paths relative to it.

    Those of published indexes are left out.

    Raises:
        DataNotFound: there is no such bucket.
        AccessDenied, Unreachable: it cannot be listed.
    """
    known = known_listings()
    if found := known.below(path):
        return found
    files: dict[str, Status] = {}
    folders = [""]
    for _ in range(_MOST_LEVELS):
        listings = folder.listed_each([_joined(path, inner) for inner in folders])
        pairs = [(inner, listings[_joined(path, inner)]) for inner in folders]
        files |= {
            _joined(inner, name): status for inner, each in pairs for name, status in each.files.items()
        }
        folders = [
            _joined(inner, name) for inner, each in pairs for name in each.folders if name != INDEX_FOLDER
        ]
        if not folders or len(folders) >= _FEWEST_SPANS:
            break
    spans = [folder.Span(_joined(path, inner), "", "") for inner in folders]
    folder.keys_below(spans)
    for inner, span in zip(folders, spans, strict=True):
        files |= {_joined(inner, name): status for name, status in folder.without_markers(span.files).items()}
    known.add_below(path, files)
    return files


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
            inner: dict[str, tuple[dict[str, None], dict[str, Status]]] = {top: ({}, {})}
            for name, status in files_below(_joined(self._root, top)).items():
                above, _, base = _joined(top, name).rpartition("/")
                _add_folder(inner, above)
                inner[above][1][base] = status
            self._listings |= {
                each: FolderListing(tuple(found), files) for each, (found, files) in inner.items()
            }

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


def _add_folder(tree: dict[str, tuple[dict[str, None], dict[str, Status]]], path: str) -> None:
    """Add a folder to a tree, and those above it up to one that the tree has."""
    if path not in tree:
        tree[path] = ({}, {})
        above, _, base = path.rpartition("/")
        _add_folder(tree, above)
        tree[above][0][base] = None


def _joined(above: str, name: str) -> str:
    return f"{above}/{name}" if above and name else above or name
