"""The data files that a source stands for: a path, a folder, a glob, or a list of those.

The result is a sequence of `FoundFiles`: consecutive files below one *root*, the fixed part of the path or
glob. The index of a root lies at the root, and the name of a file is its path relative to it, so that a
dataset can move without becoming another one.
"""

from __future__ import annotations

import errno
import fnmatch
import math
import os
import re
import stat
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

import msgspec

from seekable._arguments import checked_path
from seekable._lazy import lazy
from seekable.errors import DataNotFound, WrongType
from seekable.storage.compression import COMPRESSED
from seekable.storage.file_names import check_complete, expanded, has_braces, natural_sorted, without_indexes
from seekable.storage.files import unreadable_error

if TYPE_CHECKING:
    import difflib
else:
    difflib = lazy("difflib")

_COLLAPSED = re.compile(r"(s3|gs|gcs|az|abfs|abfss|https?):/(?=[^/])", re.IGNORECASE)

_MOST_ITERATED = 1_000_000
"""The most paths of an iterator: one that never ends is told by the next."""

PLAIN = "any"
"""The kind of a source that is neither a spec nor of a format that the user names."""

Asked = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""The sources of a user: a path, a folder, a glob, an address, or a list of those."""


def checked_asked(asked: object) -> Asked:
    """Check the source of a user; a collection that has an order becomes a list, and so does an iterator.

    Raises:
        WrongType: the source is neither a path nor a list of paths, or an iterator of more than a million.
    """
    if isinstance(asked, (str, os.PathLike)):
        return asked
    # A set has no order, and the items of a dict or of bytes are not paths.
    refused = (bytes, bytearray, AbstractSet, Mapping)
    if not isinstance(asked, Collection | Iterator) or isinstance(asked, refused):
        raise WrongType(f"data is given as a str, a path, or a list of those; got {asked!r:.200}")
    most = _MOST_ITERATED if isinstance(asked, Iterator) else math.inf
    items: list[str | os.PathLike[str]] = []
    for item in asked:
        if not isinstance(item, str | os.PathLike):
            raise WrongType(f"a list of data holds strings and paths; got {item!r:.200}")
        if len(items) == most:
            raise WrongType(
                f"data is given by {asked!r:.200}, which has more than {most:,} paths: give a list"
            )
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


Arrange = Callable[[str, Sequence[str]], Sequence[str]]
"""Returns which of a folder's files are data, in the order in which their records come."""


class Listing(msgspec.Struct, frozen=True):
    """The names below one folder, relative to it."""

    root: str
    """The absolute path of the folder."""

    names: Sequence[str]
    """The files, without what is skipped."""

    data: Sequence[str]
    """The files that have a suffix of data files; of a glob, all files."""

    suffixes: tuple[str, ...]
    """The suffixes of data files, in lower case."""

    passed: Sequence[str]
    """The files and folders that are skipped because of their names; of a glob, the folders too."""

    whole: bool
    """True for a folder, in which all subfolders were listed; False for a glob."""


Inspect = Callable[[Listing], Container[str]]
"""Returns which files below a folder are never data, or raises an error for a folder that is not read."""

MAGIC = re.compile(r"[*?\[]")
"""A character of a path that makes it a glob."""

RECURSIVE = "**"
"""The part of a glob that stands for any number of folders."""

_END = fnmatch.translate("").removeprefix("(?s:").removeprefix(")")
"""The end of every translated pattern: the end of the name."""

_WORTH_LISTING = 100
HIDDEN = (".", "_")
"""The first characters of names that are skipped in folders."""


class FoundFiles(msgspec.Struct, frozen=True):
    """Consecutive data files below one root."""

    root: str
    """An absolute folder; symbolic links in it are kept as they are."""

    names: tuple[str, ...]
    """Paths relative to the root, in the order in which their records come."""


def find_files(
    asked: Asked,
    *,
    suffixes: Iterable[str],
    inspect: Inspect | None = None,
    arrange: Arrange | None = None,
) -> tuple[FoundFiles, ...]:
    """Return the data files of a source, in the order of their records.

    - A path that exists is that file or folder, whatever characters it has.
    - A folder means all files below it that end in one of the suffixes, in natural order of their
      relative paths; names that start with ``.`` or ``_`` are skipped, files and folders alike.
    - A glob (``*``, ``?``, ``[...]``, and ``**`` for any number of folders) means all files that it
      matches, in natural order, without the indexes of matched files (``a.jsonl.idx``); a wildcard does not
      match a leading dot. A suffix of data files at its end,
      or before wildcards there (``*.jsonl*``), matches that suffix in letters of any case.
    - Braces, ``part-{000..099}.tar`` or ``{a,b}/*.tar``, mean the paths and globs that they stand for, in the
      order in which they are written; each of them must exist.
    - A list means its items one after the other.
    - Names such as ``train-00001-of-00003.parquet`` say how many files belong together: none of them may be
      missing in a folder, nor among those that a glob would match.

    Args:
        asked: the path, folder, glob or list.
        suffixes: how names of data files in a folder end, in lower case, dot included.
        inspect: returns the files that are never data, given all names below a folder, or all files that a
            glob without a name at its end (``folder/*``) matches.
        arrange: returns the data files of a folder, given its files with such names in natural order.

    Raises:
        DataNotFound: there is no such file or folder, or no data file in it, or one is missing.
        AccessDenied: this user may not search a folder.
        WrongType: the source is neither a path nor a list of paths.
    """
    checked = checked_asked(asked)
    items = [checked] if isinstance(checked, (str, os.PathLike)) else checked
    rules = Rules(tuple(suffixes), inspect, arrange)
    roots: list[str] = []
    names: list[list[str]] = []
    for item in items:
        for path in _expanded_paths(_as_path(item)):
            run = _find(path, rules)
            if roots[-1:] != [run.root]:
                roots.append(run.root)
                names.append([])
            names[-1] += run.names
    if not roots:
        raise DataNotFound("an empty list names no data; give at least one path")
    return tuple(map(FoundFiles, roots, map(tuple, names)))


class Rules(msgspec.Struct, frozen=True):
    """The rules for folders and globs; see ``find_files``."""

    suffixes: tuple[str, ...]
    """The ends of names of data files in a folder, in lower case."""

    inspect: Inspect | None
    """Returns the files that are never data."""

    arrange: Arrange | None
    """Returns the data files of a folder, in order."""

    def in_folder(self, root: str, all_names: list[str], hidden: list[str]) -> FoundFiles:
        """Return the data files of a folder.

        Args:
            root: the folder.
            all_names: the paths of all files below it, relative to it.
            hidden: the paths of the files and folders that were skipped.

        Raises:
            DataNotFound: it has no data file, or lacks one of a number that its names say.
        """
        known = [name for name in all_names if name.lower().endswith(self.suffixes)]
        never = self._never_data(Listing(root, all_names, known, self.suffixes, hidden, whole=True))
        data = natural_sorted(name for name in known if name not in never)
        names = self.arrange(root, data) if self.arrange else data
        if not names:
            raise DataNotFound(
                f"the folder {root!r} has no data file: none below it ends in {', '.join(self.suffixes)} "
                f"(names that start with '.' or '_' are skipped); name the files themselves, or use a glob"
            )
        check_complete(data, f"the folder {root!r}")
        return FoundFiles(root, tuple(names))

    def of_glob(self, root: str, last: str, names: set[str], passed: list[str]) -> tuple[str, ...]:
        """Return the data files among those that a glob matches, in natural order.

        Args:
            root: the folder that the names are relative to.
            last: the last part of the glob.
            names: the files that it matches.
            passed: the other files, and the folders, that lie beside them.

        Raises:
            DataNotFound: a file that the glob would match is missing, by the names of others.
        """
        matched = without_indexes(names)
        if not last.strip("*"):
            all_names = list(matched)
            listing = Listing(root, all_names, all_names, self.suffixes, passed, whole=False)
            never = self._never_data(listing)
            matched = {name for name in matched if name not in never}
        names_in_order = tuple(natural_sorted(matched))
        check_complete(names_in_order, f"the folder {root!r}", wanted=matcher(last, self.suffixes))
        return names_in_order

    def _never_data(self, listing: Listing) -> Container[str]:
        return self.inspect(listing) if self.inspect else ()


def missing(root: str, names: Iterable[str]) -> set[str]:
    """Return those of some files below a root that do not exist; a broken link does.

    Example:
        >>> missing("/", ["no such file"])
        {'no such file'}
    """
    folders: dict[str, list[str]] = {}
    for name in names:
        folders.setdefault(os.path.dirname(name), []).append(name)
    gone: set[str] = set()
    for folder, some in folders.items():
        listed = _listed(os.path.join(root, folder)) if len(some) > _WORTH_LISTING else set()
        # A file may exist under a name that is not listed, where case does not matter.
        unseen = [name for name in some if os.path.basename(name) not in listed]
        gone.update(name for name in unseen if not os.path.lexists(os.path.join(root, name)))
    return gone


def _listed(folder: str) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def _as_path(item: str | os.PathLike[str]) -> str:
    if item in ("", b""):
        raise DataNotFound("an empty string names no data; write '.' for the working folder")
    return checked_path(item)


def _expanded_paths(path: str) -> list[str]:
    """Return the absolute paths and globs that a path stands for: itself if it exists, or has no braces.

    Args:
        path: the path as the user wrote it; what its braces stand for may be relative or absolute.

    Raises:
        DataNotFound: some of the paths do not exist.
        InvalidArgument: a brace is not closed, or was not opened.
    """
    if "{" not in path or not has_braces(path) or os.path.lexists(path):
        return [os.path.abspath(path)]
    paths = [os.path.abspath(each) for each in expanded(path)]
    lost = [each for each in paths if not MAGIC.search(each) and not os.path.lexists(each)]
    if lost:
        message = (
            f"of the {len(paths):,} paths that {path!r} stands for, {len(lost):,} do not exist; the first of "
            f"these is {lost[0]!r}: {_nearest(lost[0])}"
        )
        raise DataNotFound(message)
    return paths


def _find(path: str, rules: Rules) -> FoundFiles:
    try:
        mode = os.stat(path).st_mode
    except PermissionError:
        raise unreadable_error(path) from None
    except OSError as error:
        if os.path.islink(path):
            how = "leads back to itself" if error.errno == errno.ELOOP else "is not there"
            raise DataNotFound(f"{path!r} is a link to {os.readlink(path)!r}, which {how}") from None
    else:
        if stat.S_ISREG(mode):
            return FoundFiles(os.path.dirname(path), (os.path.basename(path),))
        if stat.S_ISDIR(mode):
            return _find_in_folder(path, rules)
        raise DataNotFound(f"{path!r} is neither a regular file nor a folder; only those can be indexed")
    if MAGIC.search(path):
        return _find_by_glob(path, rules)
    raise DataNotFound(f"there is no {path!r}; {_nearest(path)}")


def _find_in_folder(root: str, rules: Rules) -> FoundFiles:
    hidden: list[str] = []
    return rules.in_folder(root, list(_walk(root, HIDDEN, skipped=hidden)), hidden)


def _find_by_glob(pattern: str, rules: Rules) -> FoundFiles:
    parts = pattern.split(os.sep)
    fixed = next(number for number in range(len(parts)) if _is_pattern(parts[: number + 1]))
    root = os.sep.join(parts[:fixed]) or os.sep
    if not os.path.isdir(root):
        raise DataNotFound(f"nothing matches {pattern!r}: there is no folder {root!r}; {_nearest(root)}")
    passed: list[str] = []
    # `**` meets a file on several ways when it is written twice: each file counts once.
    found = set(_matches(root, "", parts[fixed:], rules.suffixes, passed))
    matched = rules.of_glob(root, parts[-1], found, passed)
    if not matched:
        raise DataNotFound(f"no file matches {pattern!r}; {_nearest(os.path.join(root, parts[fixed]))}")
    return FoundFiles(root, matched)


def _is_pattern(parts: list[str]) -> bool:
    """Return True if the last part is a pattern: not if there is a folder of just that name."""
    return bool(MAGIC.search(parts[-1])) and not os.path.isdir(os.sep.join(parts))


def _matches(
    root: str, folder: str, parts: list[str], suffixes: tuple[str, ...], passed: list[str]
) -> Iterator[str]:
    """Yield the names of the files below ``root/folder`` that the parts of a pattern match.

    Other files and folders in the last folders of the pattern are added to ``passed``.
    """
    part, rest = parts[0], parts[1:]
    here = os.path.join(root, folder)
    if part == RECURSIVE:
        below = rest or ["*"]
        yield from _matches(root, folder, below, suffixes, passed)
        for name in _walk(here, ".", folders=True):
            yield from _matches(root, os.path.join(folder, name), below, suffixes, passed)
        return
    matches = matcher(part, () if rest else suffixes)
    for entry in _scan(here):
        name = os.path.join(folder, entry.name)
        if not matches(entry.name) or (entry.name.startswith(".") and not part.startswith(".")):
            if not rest:
                passed.append(name)
            continue
        if rest and _is_folder(entry):
            yield from _matches(root, name, rest, suffixes, passed)
        elif not rest and _is_file_or_broken(entry):
            yield name
        elif not rest:
            passed.append(name)


def matcher(part: str, suffixes: tuple[str, ...]) -> Callable[[str], object]:
    """Return a function that is true of the names that a part of a pattern matches.

    A suffix of data at the end of the part, or before wildcards there (``*.jsonl*``), matches in letters of
    any case, the rest exactly.

    Args:
        part: the part of the pattern.
        suffixes: the suffixes of data; none for a part that folders match.
    """
    endings = (*suffixes, *(f".{kind}" for kind in COMPRESSED)) if suffixes else ()
    named = part.rstrip("*?.")
    suffix = max((each for each in endings if named.lower().endswith(each)), key=len, default="")
    stem = fnmatch.translate(named[: len(named) - len(suffix)]).removesuffix(_END)
    return re.compile(f"{stem}(?i:{re.escape(suffix)}){fnmatch.translate(part[len(named) :])}").match


def _walk(
    root: str,
    hidden: str | tuple[str, ...],
    *,
    folders: bool = False,
    skipped: list[str] | None = None,
) -> Iterator[str]:
    """Yield the names of all files (or of all folders) below a folder, relative to it.

    Linked folders are followed, but not into a folder that is being walked already.

    Args:
        root: the folder.
        hidden: how names begin that are skipped, files and folders alike.
        folders: True for folders instead of files.
        skipped: gets the names of what is skipped.
    """
    pending: list[tuple[str, tuple[tuple[int, int], ...]]] = [("", (_identity(root),))]
    while pending:
        folder, trail = pending.pop()
        before = os.path.join(folder, "")
        for entry in _scan(os.path.join(root, folder)):
            name = before + entry.name
            if entry.name.startswith(hidden):
                if skipped is not None:
                    skipped.append(name)
                continue
            if not _is_folder(entry):
                if not folders and _is_file_or_broken(entry):
                    yield name
                continue
            identity = _identity(entry.path)
            if identity in trail:
                continue
            pending.append((name, (*trail, identity)))
            if folders:
                yield name


def _scan(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except PermissionError:
        raise unreadable_error(folder) from None


def _is_file_or_broken(entry: os.DirEntry[str]) -> bool:
    # A link to a file that is not there is listed, so that it is missed loudly when it is opened.
    try:
        return entry.is_file() or (entry.is_symlink() and not os.path.exists(entry.path))
    except OSError:  # A link that leads back to itself, or where this user may not look.
        return True


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _identity(folder: str) -> tuple[int, int]:
    status = os.stat(folder)
    return status.st_dev, status.st_ino


def _nearest(path: str) -> str:
    """Return a hint for a path that does not exist: names near it."""
    if "::" in path:
        return "WebDataset separates lists of files by '::'; write them as one list, sk.open([...])"
    parent = os.path.dirname(path)
    while not os.path.isdir(parent):
        path, parent = parent, os.path.dirname(parent)
    names = os.listdir(parent)
    close = difflib.get_close_matches(os.path.basename(path), names, n=3)
    if close:
        return f"in {parent!r} there is {', '.join(map(repr, close))}: was that meant?"
    return f"the nearest folder that exists is {parent!r}, with {len(names)} entries"
