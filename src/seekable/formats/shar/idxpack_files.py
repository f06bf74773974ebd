"""The files that a pack of Lhotse's indexes names, ``corpus.idxpack``: in its order, with its offsets."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seekable.errors import DataNotFound, InvalidArgument
from seekable.formats.classify import card_of_all, find_data, format_for
from seekable.formats.contract import Claim
from seekable.formats.lines.jsonl import Jsonl
from seekable.formats.refusals import refuse_unopened
from seekable.formats.shar.idxpack import SUFFIX, read_pack
from seekable.storage.addresses import shown
from seekable.storage.trust import check_below

if TYPE_CHECKING:
    from seekable.formats.look import Look
    from seekable.formats.shar.idxpack import Collection, Pack
    from seekable.storage.listing import FoundFiles

__all__ = ["SUFFIX", "pack_claim"]

_SCHEME = SUFFIX[1:]
_FORM = "idxpack:PATH:NUMBER"
_MOST_LISTED = 20
_OUTSIDE = "Or copy the pack to this machine, where it may name any file"


def pack_claim(look: Look) -> Claim:
    """Return the files of a collection of a pack: ``idxpack:PATH:NUMBER``, ``idxpack:PATH`` or a path.

    Lines are read with the offsets of the pack.

    Raises:
        InvalidArgument: there is no path or no such collection, there are several, or the user gave the value
            of another format.
        DataNotFound: the pack or a file of it is not there, or the collection has no file.
        UnsupportedFormat: the pack is damaged, or a file lies on another machine.
    """
    path, number = look.path, ""
    if look.spec == _SCHEME:
        path, _, number = look.rest.rpartition(":")
        if not path or not number.isdecimal():
            path, number = look.rest, ""
        if not path:
            message = f"{look.path!r} is not complete: the form is {_FORM}, or {_SCHEME}:PATH"
            raise InvalidArgument(message)
    files = _PackFiles(look.path, os.path.expanduser(path), int(number) if number else None, look.allow)
    found = files.found(look.name)
    form = format_for(look, card_of_all(found).name if look.name is None else look.name)
    if isinstance(form, Jsonl):
        form = replace(form, pack=files.path)
    return Claim(format=form, found=found)


@dataclass(frozen=True, slots=True)
class _PackFiles:
    """The files of one collection of a pack."""

    text: str
    """The spec, or the path of the pack, as the user wrote it."""

    path: str
    """The path of the pack."""

    number: int | None
    """The number of the collection; None for the only one whose files can be opened."""

    allow: tuple[str, ...] = ()
    """Of a pack in a store: the folders and files, besides its own folder, that it may name."""

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
            if "://" in self.path:
                folder = shown(os.path.dirname(self.path))
                check_below(shown(path), [folder], by=repr(self.path), way_out=_OUTSIDE, allow=self.allow)
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
        path.lower().endswith(Jsonl.card.suffixes) for path in collection.paths
    )
