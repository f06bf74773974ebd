"""The files that a pack of Lhotse's indexes names, ``corpus.idxpack``: in its order, with its offsets."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seekable.dataset.spec import Spec
from seekable.errors import DataNotFound, InvalidArgument
from seekable.formats.lines.jsonl import JsonlScanner
from seekable.formats.registry import FORMATS, find_data, format_named, format_of_all
from seekable.formats.shar.idxpack import SUFFIX, read_pack
from seekable.formats.unopened import refuse_unopened

if TYPE_CHECKING:
    from seekable.formats.registry import Format
    from seekable.formats.shar.idxpack import Collection, Pack
    from seekable.index.surveyor import Finder
    from seekable.storage.listing import FoundFiles

__all__ = ["IdxpackSpec", "idxpack_spec"]

_FORM = "idxpack:PATH:NUMBER"
_MOST_LISTED = 20


@dataclass(frozen=True, slots=True)
class IdxpackSpec(Spec):
    """The files of one collection of a pack."""

    text: str
    """The spec, or the path of the pack, as the user wrote it."""

    path: str
    """The path of the pack."""

    number: int | None
    """The number of the collection; None for the only one whose files can be opened."""

    def files(
        self, format_name: str | None, *, index_dir: str | os.PathLike[str] | None
    ) -> tuple[tuple[FoundFiles, ...], Format]:
        """Return the files of the collection in its order, and their format; see `found`."""
        found = self.found(format_name)
        return found, format_of_all(found) if format_name is None else format_named(format_name)

    def scanner(self, form: Format) -> Finder:
        """Return the scanner of the files, with the offsets of the pack where it scans JSON lines."""
        scanner = form.scanner
        return replace(scanner, pack=self.path) if isinstance(scanner, JsonlScanner) else scanner

    def found(self, format_name: str | None) -> tuple[FoundFiles, ...]:
        """Return the files of the collection in its order.

        Args:
            format_name: the format that the user named, if any.

        Raises:
            DataNotFound: the pack or a file of it is not there, or the collection has no file.
            InvalidArgument: there is no such collection, or there are several.
            UnsupportedFormat: the pack is damaged, or a file lies on another machine.
        """
        pack = read_pack(self.path)
        collection = self._collection(pack)
        if not collection.paths:
            message = f"the collection {collection} of {self.path!r} names no file"
            raise DataNotFound(message)
        for path in collection.paths:
            refuse_unopened(path)
        try:
            return find_data([pack.located(path) for path in collection.paths], format_name=format_name)
        except DataNotFound as error:
            error.add_note(f"collection {collection.number} of the pack {self.path!r} names it")
            raise

    def _collection(self, pack: Pack) -> Collection:
        """Return the collection that the user named, or the only one of JSON lines, or of files.

        Raises:
            InvalidArgument: there is no such collection, or there are several.
        """
        listed = "; ".join(map(str, pack.collections[:_MOST_LISTED])) or "none"
        if (more := len(pack.collections) - _MOST_LISTED) > 0:
            listed += f"; and {more:,} more"
        if self.number is not None:
            if self.number < len(pack.collections):
                return pack.collections[self.number]
            message = f"{self.text!r}: the pack has no collection {self.number}. It has {listed}"
            raise InvalidArgument(message)
        files = [each for each in pack.collections if each.content != "array"]
        lines = [each for each in files if _has_lines(each)]
        chosen = lines or files
        if len(chosen) == 1:
            return chosen[0]
        message = (
            f"the pack {self.path!r} has {len(chosen) or 'no'} collections of files: open one "
            f"as {_FORM}, {f'idxpack:{self.path}:0'!r}. It has {listed}"
        )
        raise InvalidArgument(message)


def _has_lines(collection: Collection) -> bool:
    return bool(collection.paths) and all(
        path.lower().endswith(FORMATS["jsonl"].suffixes) for path in collection.paths
    )


def idxpack_spec(text: str) -> IdxpackSpec | None:
    """Return the spec of a pack, None for another text: ``idxpack:PATH:NUMBER``, ``idxpack:PATH`` or a path.

    Raises:
        InvalidArgument: it has no path.

    Example:
        >>> idxpack_spec("idxpack:a.idxpack:1").number, idxpack_spec("a.idxpack").path
        (1, 'a.idxpack')
        >>> idxpack_spec("a.jsonl") is None
        True
    """
    scheme = SUFFIX[1:] + ":"
    if not text.startswith(scheme):
        return IdxpackSpec(text, os.path.expanduser(text), None) if text.endswith(SUFFIX) else None
    path, _, number = text.removeprefix(scheme).rpartition(":")
    if not path or not number.isdecimal():
        path, number = text.removeprefix(scheme), ""
    if not path:
        message = f"{text!r} is not complete: the form is {_FORM}, or {scheme}PATH"
        raise InvalidArgument(message)
    return IdxpackSpec(text, os.path.expanduser(path), int(number) if number else None)
