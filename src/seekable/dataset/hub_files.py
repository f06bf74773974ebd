"""The files of a Hub spec, ready to be indexed: files of a local folder, or placeholders."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from seekable.errors import InvalidArgument, UnsupportedFormat
from seekable.formats.registry import format_named
from seekable.index.catalog import read_table
from seekable.index.index_location import find_index, hub_folder
from seekable.index.table_indexer import is_table_indexer
from seekable.parallel.progress import Progress
from seekable.remote.hub import hub_ranges
from seekable.remote.hub_listing import list_folder, list_hub
from seekable.remote.placeholder import HubFile, write_placeholders
from seekable.remote.remote_ranges import AT_ONCE
from seekable.storage.listing import Found

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from seekable.formats.registry import SourceOptions
    from seekable.parallel.progress import ProgressHook

__all__ = ["HubSpec", "hub_files"]

_FORMAT = "parquet"


@dataclass(frozen=True, slots=True)
class HubSpec:
    """A split of a repository on the Hub, or of a folder that holds the files of one."""

    text: str
    """The text of the spec, as the user wrote it."""

    repo: str
    """The repository: ``NAMESPACE/NAME``, a name alone, or the absolute path of a folder."""

    revision: str | None
    """A branch, a tag or a commit, if one was named."""

    config: str | None
    """The dataset of the repository, if it has several; else None."""

    split: str
    column: str | None
    """The only column to read; None for all columns."""

    format: ClassVar[str] = _FORMAT

    def narrowed(self, options: SourceOptions) -> SourceOptions:
        """Return the options for the files: the column of the spec is the only one that is read.

        Raises:
            InvalidArgument: the options name columns too.
        """
        if self.column is None:
            return options
        if options.columns is not None:
            message = (
                f"{self.text!r} and columns={list(options.columns)!r} both choose the columns to read: "
                f"write {self.text.removesuffix(f':{self.column}')!r} to have columns="
            )
            raise InvalidArgument(message)
        return replace(options, columns=[self.column])

    @property
    def is_local(self) -> bool:
        """True if the repository is a folder of this machine."""
        return self.repo.startswith("/")


def hub_files(
    spec: HubSpec, *, index_dir: str | os.PathLike[str] | None, progress: ProgressHook | None
) -> tuple[Found, ...]:
    """Return the files of a split.

    Files on the Hub get placeholders. The footers of files without an index are fetched, many at a time.

    Args:
        spec: the split.
        index_dir: the user's folder for indexes, if any; placeholders and blocks are written there too.
        progress: is called with the number of footers that were fetched.

    Raises:
        AccessDenied: the repository is private or gated.
        DataNotFound: the repository or the split does not exist.
        Unreachable: the Hub cannot be reached.
        InvalidArgument: several datasets of the repository have the split.
        MissingDependency: ``huggingface_hub`` is not installed.
    """
    if spec.is_local:
        return (Found(spec.repo, tuple(list_folder(spec))),)
    files = list_hub(spec, hub_folder(index_dir))
    write_placeholders(files)
    root = files[0].placeholder.removesuffix(files[0].path).rstrip("/")
    names = tuple(file.path for file in files)
    _fetch_footers(_not_indexed(files, root, index_dir=index_dir), progress)
    return (Found(root, names),)


def _not_indexed(
    files: Sequence[HubFile], root: str, *, index_dir: str | os.PathLike[str] | None
) -> list[HubFile]:
    table = read_table(find_index(root, index_dir=index_dir).folder)
    if table is None:
        return list(files)
    name = format_named(_FORMAT).scanner.name
    rows = table.rows([file.path for file in files], format_name=name).tolist()
    return [file for file, row in zip(files, rows, strict=True) if row < 0]


def _fetch_footers(files: Sequence[HubFile], progress: ProgressHook | None) -> None:
    """Fetch the bytes that indexing will read, many files at a time; indexing reads one after the other."""
    if not files:
        return
    form = format_named(_FORMAT).scanner
    assert is_table_indexer(form)

    def look(file: HubFile) -> None:
        with suppress(UnsupportedFormat):  # Indexing fetches the bytes again, and raises the error.
            form.read_layout(hub_ranges(file))

    with ThreadPoolExecutor(min(len(files), AT_ONCE)) as threads:
        fetches = [threads.submit(look, file) for file in files]
        try:
            for done, answer in enumerate(as_completed(fetches), start=1):
                answer.result()
                if progress is not None:
                    progress(Progress(0, 0, 0, 0, done, task="fetching footers", rows=len(files)))
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise
