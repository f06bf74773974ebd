"""Files of the Hub, ready to be indexed: files of a local folder, or placeholders."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seekable.errors import AccessDenied, InvalidArgument, UnsupportedFormat
from seekable.formats.classify import card_of_all, format_for
from seekable.formats.contract import Claim
from seekable.formats.table import CARDS, card_named
from seekable.index.build.commit import add_entries, folder_lock, make_folder, sidecars_of
from seekable.index.catalog import read_table, whole_segments
from seekable.index.digest import END_BYTES, head_tail_digest
from seekable.index.finder import is_surveyor, is_table_indexer
from seekable.index.index_location import find_index, hub_folder, index_in
from seekable.parallel.progress import Progress
from seekable.remote.hub_listing import HubSpec, hub_spec, list_folder, list_hub
from seekable.remote.placeholder import (
    hub_ranges,
    is_placeholder_folder,
    read_placeholder,
    write_placeholders,
)
from seekable.storage.files import TEMPORARY_SUFFIX
from seekable.storage.listing import FoundFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seekable.formats.contract import Format
    from seekable.formats.look import Look
    from seekable.index.file_table import Entry
    from seekable.index.finder import Finder, TableIndexer
    from seekable.parallel.progress import ProgressHook

_TEXT_COLUMN = "text"
"""The column of lines of text, as the package ``datasets`` names it."""

_AT_ONCE = 16
"""The footers that are fetched at a time."""


def hub_claim(look: Look) -> Claim:
    """Return the files of a split and their format; a column of the spec is the only one that is read.

    Raises:
        AccessDenied: the repository is private or gated.
        DataNotFound: the repository or the split does not exist.
        Unreachable: the Hub cannot be reached.
        InvalidArgument: several datasets of the repository have the split, no format has the name that the
            user gave, or the spec and ``columns=`` both name columns.
        UnsupportedFormat: the files of the split have several formats.
        MissingDependency: ``huggingface_hub`` is not installed.
    """
    spec = replace(hub_spec(look.path), format=look.name)
    if spec.column is not None and look.columns is not None:
        message = (
            f"{spec.text!r} and columns={list(look.columns)!r} both choose the columns to read: write "
            f"{spec.text.removesuffix(f':{spec.column}')!r} to have columns="
        )
        raise InvalidArgument(message)
    found, name = hub_files(spec, index_dir=look.index_dir)
    form = format_for(look, name)
    before = None if spec.is_local else prepare_index
    if form.name == "text":
        return Claim(format=_of_text(spec, form), found=found, before_index=before)
    if spec.column is None:
        return Claim(format=form, found=found, before_index=before)
    finder = form.settled(found).finder
    if is_table_indexer(finder) or is_surveyor(finder):
        return Claim(format=form, found=found, columns=(spec.column,), before_index=before)
    return Claim(format=_of_field(spec, form), found=found, before_index=before)


def _of_text(spec: HubSpec, form: Any) -> Format:
    if spec.column not in (None, _TEXT_COLUMN):
        message = (
            f"{spec.text!r} has lines of text, which have one column, {_TEXT_COLUMN!r}: write "
            f"{spec.text.removesuffix(f':{spec.column}')}:{_TEXT_COLUMN}, and rename it with "
            f".rename({{{_TEXT_COLUMN!r}: {spec.column!r}}})"
        )
        raise InvalidArgument(message)
    made: Format = replace(form, column=_TEXT_COLUMN)
    return made


def _of_field(spec: HubSpec, form: Any) -> Format:
    if not hasattr(form, "field"):
        message = (
            f"a column is for records that are dicts (got {spec.column!r}), and {spec.text!r} is {form.name}"
        )
        raise InvalidArgument(message)
    made: Format = replace(form, field=spec.column)
    return made


def prepare_index(
    found: Sequence[FoundFiles],
    finder: Finder,
    *,
    index_dir: str | os.PathLike[str] | None,
    progress: ProgressHook | None,
) -> None:
    """Take over what the indexes of other commits have; fetch the footers of the tables that they lack.

    Indexing reads the footer of one file after the other; here they are fetched many at a time. Of other
    formats it reads each file as a whole.

    Args:
        found: the files.
        finder: finds the records in them.
        index_dir: the user's folder for indexes, if any.
        progress: is called with the number of footers that were fetched.

    Raises:
        AccessDenied, DataNotFound, Unreachable, IndexStale: bytes cannot be fetched.
    """
    for run in found:
        if not is_placeholder_folder(run.root):
            continue
        _adopt_entries(run, format_name=finder.name, index_dir=index_dir)
        if is_table_indexer(finder):
            _fetch_footers(_not_indexed(run, finder.name, index_dir=index_dir), finder, progress)


def hub_files(
    spec: HubSpec, *, index_dir: str | os.PathLike[str] | None
) -> tuple[tuple[FoundFiles, ...], str]:
    """Return the files of a split and the name of their format. Files on the Hub get placeholders.

    Args:
        spec: the split.
        index_dir: the user's folder for indexes, if any; placeholders and lists are written there too.

    Raises:
        AccessDenied: the repository is private or gated.
        DataNotFound: the repository or the split does not exist.
        Unreachable: the Hub cannot be reached.
        InvalidArgument: several datasets of the repository have the split, or no format has the name.
        UnsupportedFormat: the files of the split have several formats.
        MissingDependency: ``huggingface_hub`` is not installed.
    """
    suffixes = _suffixes(spec.format)
    if spec.is_local:
        found = FoundFiles(spec.repo, tuple(list_folder(spec, suffixes)))
    else:
        files, indexes = list_hub(spec, hub_folder(index_dir), suffixes)
        write_placeholders([*files, *indexes])
        root = files[0].placeholder.removesuffix(files[0].path).rstrip("/")
        found = FoundFiles(root, tuple(file.path for file in files))
    return (found,), card_of_all([found]).name if spec.format is None else spec.format


def _suffixes(format_name: str | None) -> dict[str, tuple[str, ...]]:
    """Return the suffixes of data files by format; those of one format if the user named one.

    Raises:
        InvalidArgument: no format has the name.
    """
    suffixes = {card.name: card.ends for card in CARDS if card.by_name}
    if format_name is None:
        return suffixes
    return {format_name: suffixes[card_named(format_name).name]}


def _not_indexed(run: FoundFiles, format_name: str, *, index_dir: str | os.PathLike[str] | None) -> list[str]:
    """Return the paths of the placeholders that have no index."""
    paths = [os.path.join(run.root, name) for name in run.names]
    table = read_table(find_index(run.root, index_dir=index_dir).folder)
    if table is None:
        return paths
    rows = table.rows(list(run.names), format_name=format_name).tolist()
    return [path for path, row in zip(paths, rows, strict=True) if row < 0]


def _fetch_footers(paths: Sequence[str], form: TableIndexer, progress: ProgressHook | None) -> None:
    if not paths:
        return

    def look(path: str) -> None:
        with open(path, "rb") as file:
            text = file.read()
        with contextlib.suppress(
            UnsupportedFormat
        ):  # Indexing fetches the bytes again, and raises the error.
            form.read_layout(hub_ranges(read_placeholder(path, text)))

    with ThreadPoolExecutor(min(len(paths), _AT_ONCE)) as threads:
        fetches = [threads.submit(look, path) for path in paths]
        try:
            for done, answer in enumerate(as_completed(fetches), start=1):
                answer.result()
                if progress is not None:
                    progress(Progress(0, 0, 0, 0, done, task="fetching footers", rows=len(paths)))
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def _adopt_entries(run: FoundFiles, *, format_name: str, index_dir: str | os.PathLike[str] | None) -> None:
    """Add entries for equal files, from the indexes of sibling folders.

    Each commit of a repository has a folder of placeholders, and an index, of its own. Most commits change
    few files, and a placeholder names the content of its file: so the entry that another commit has for an
    equal placeholder is valid for this one, and the file is not scanned again. Segments of offsets, seek
    points and schemas never change: they are linked.

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
    whole = dict(zip(table.segments, whole_segments(donor, table)[0].tolist(), strict=True))
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
                for name in (entry.segment.file_name, *sorted(sidecars_of([entry]))):
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
