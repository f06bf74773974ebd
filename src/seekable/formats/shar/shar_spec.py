"""Opening a Shar: a folder, a spec ``shar:DIR``, or a dict of its fields."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from seekable.errors import InvalidArgument
from seekable.formats.shar.discovery import CUTS, fields_of_folder, is_shar, named_fields
from seekable.formats.shar.shar_opening import open_shar
from seekable.parallel.progress import progress_or_bar
from seekable.storage import paths

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seekable.formats.registry import Format
    from seekable.formats.shar.discovery import SharFiles
    from seekable.formats.shar.shar_source import SharSource
    from seekable.formats.source_options import SourceOptions
    from seekable.index.fileset import FileSet
    from seekable.index.opening import Indexing
    from seekable.nodes.files.byte_source import FileSource
    from seekable.nodes.keys.key import KeyOf
    from seekable.parallel.progress import Progress, ProgressHook
    from seekable.storage.listing import FoundFiles

__all__ = ["SharOpening", "shar_files"]

_SPEC = "shar:"

_KEY = "id"
"""The key of cuts, unless the user defines another one."""


def shar_files(source: object, *, format_name: str | None) -> SharFiles | None:
    """Return the files of a Shar that a user names, None if the source is none.

    Args:
        source: a spec ``shar:DIR``, a folder, or a dict with the files of the field ``"cuts"`` and of others.
        format_name: the format that the user named; with another one than ``"shar"`` a folder is a plain one.

    Raises:
        DataNotFound: a file or a folder does not exist.
        InvalidArgument: the spec is incomplete, or is of another format.
        UnsupportedFormat: the files do not go together.
    """
    if isinstance(source, Mapping):
        return named_fields(source) if CUTS in source else None
    if not isinstance(source, str | os.PathLike):
        return None
    path = os.fsdecode(source)
    if path.startswith(_SPEC) and not os.path.lexists(path):
        if format_name not in (None, "shar"):
            message = f"{path!r} is a Shar; leave format={format_name!r} out"
            raise InvalidArgument(message)
        if path == _SPEC:
            message = f"{path!r} is not complete: shar:DIR, where DIR has the files cuts.*.jsonl"
            raise InvalidArgument(message)
        return fields_of_folder(path.removeprefix(_SPEC))
    is_one = format_name is None and paths.is_folder(path) and is_shar(paths.list_folder(path))
    return fields_of_folder(path) if is_one or format_name == "shar" else None


class _Counted:
    """A hook for the progress of several builds, whose files are counted on."""

    def __init__(self, hook: ProgressHook | None) -> None:
        self._hook = hook
        self._before = self._done = 0

    def begin(self) -> None:
        """Count on from the files of the build that has ended."""
        self._before += self._done
        self._done = 0

    def __call__(self, progress: Progress) -> None:
        """Pass on the progress of a build, with the files of the builds before it."""
        self._done, before = progress.files_done, self._before
        if self._hook is not None:
            self._hook(
                replace(progress, files_done=before + progress.files_done, files=before + progress.files)
            )


@dataclass(frozen=True, slots=True)
class SharOpening:
    """The files of a Shar, and the arguments of ``sk.open`` that say how they are indexed."""

    shar: SharFiles
    key: KeyOf | None
    indexing: Indexing

    def source(self, options: SourceOptions, *, with_keys: Callable[..., Any]) -> SharSource | FileSource:
        """Index what is new or changed, and return the source; that of the cuts if there is nothing else.

        Args:
            options: the arguments of ``sk.open`` for records.
            with_keys: returns a source with the index of its keys.

        Raises:
            InvalidArgument: an option names a column or a field that there is not.
            UnsupportedFormat: the files of a field do not go with the cuts.
            DataNotFound, AccessDenied, IndexStale, BadKey: as of ``sk.open``.
        """
        with progress_or_bar(self.indexing.progress) as shown:
            counted = _Counted(shown)
            indexing = replace(self.indexing, progress=counted)

            def index(found: Sequence[FoundFiles], form: Format) -> FileSet:
                counted.begin()
                return indexing.files(found, form.scanner)

            return open_shar(
                self.shar, options, index=index, with_keys=lambda lines: self._keyed(lines, with_keys)
            )

    def _keyed(self, lines: FileSource, with_keys: Callable[..., Any]) -> FileSource:
        """Return the source of the cuts with keys; without any, if the first cut has no id."""
        key = self.key
        if key is None:
            first = lines.record(0) if lines.size else {}
            if not isinstance(first, dict) or _KEY not in first:
                return lines
            key = _KEY
        found: FileSource = with_keys(lines, key, self.indexing)
        return found
