"""The shards that a list of wids names, ``wids:shards/index.json``: tar files in its order, counted."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import msgspec

from seekable.errors import IndexStale, InvalidArgument, UnsupportedFormat
from seekable.formats.classify import format_of_spec
from seekable.formats.contract import Claim
from seekable.formats.finding import find_files
from seekable.formats.refusals import refuse_unopened
from seekable.formats.tar.sample_source import SampleSource
from seekable.storage import addresses, paths, trust

if TYPE_CHECKING:
    from seekable.formats.look import Look
    from seekable.nodes.node import Node
    from seekable.storage.listing import FoundFiles

__all__ = ["WidsFiles", "wids_claim"]

_SCHEME = "wids:"

_KIND = "wids-shard-index-v1"

_PATTERN_MARKS = "*[{"
"""What makes a pattern of a name, which could match other files, also outside of the folder."""

_OUTSIDE = "Or open the tar files themselves, as a list of their paths"


class _WidsShard(msgspec.Struct, frozen=True):
    url: str
    nsamples: int


class _List(msgspec.Struct, frozen=True):
    """The document of a list; the checksums in it are not compared."""

    kind: str = msgspec.field(name="__kind__", default="")
    base: str | None = None
    shardlist: list[_WidsShard] = []


@dataclass(frozen=True, slots=True)
class WidsFiles:
    """The shards of a list of wids."""

    path: str
    """The absolute path of the list."""

    allow: tuple[str, ...] = ()
    """The folders and files, besides the folder of the list, that it may name."""

    def found(self) -> tuple[FoundFiles, ...]:
        """Return the shards in the order of the list.

        Raises:
            DataNotFound: the list or a shard is not there.
            UnsupportedFormat: it is not a list of wids, or a shard does not lie below its folder.
        """
        found, folder = self._list(), os.path.dirname(self.path)
        shards = []
        for shard in found.shardlist:
            url = f"{found.base.rstrip('/')}/{shard.url}" if found.base else shard.url
            refuse_unopened(url)
            trust.check_below(
                addresses.shown(url),
                [addresses.shown(folder)],
                by=repr(self.path),
                way_out=_OUTSIDE,
                allow=self.allow,
            )
            path = trust.named_path(url, folder)
            if any(mark in url for mark in _PATTERN_MARKS) and not os.path.isfile(path):
                self._refuse(f"it names {url!r}, and a list names files and no patterns of names")
            shards.append(path)
        return find_files(shards, suffixes=())

    def kept(self, source: Node) -> Node:
        """Return the samples of the shards, after a check of their numbers.

        Raises:
            IndexStale: a shard has another number of samples than the list says.
        """
        assert isinstance(source, SampleSource)
        for file, (shard, records) in enumerate(
            zip(self._list().shardlist, source.files.records.tolist(), strict=True)
        ):
            if records != shard.nsamples:
                message = (
                    f"{source.files.path(file)!r} has {records:,} samples, and {self.path!r} says "
                    f"{shard.nsamples:,}: the shard was changed or is damaged. Put the old file back, or "
                    f"make the list again"
                )
                raise IndexStale(message)
        return source

    def _list(self) -> _List:
        paths.status(self.path)
        try:
            found = msgspec.json.decode(paths.read_bytes(self.path), type=_List)
        except (ValueError, RecursionError) as error:
            self._refuse(str(error))
        if found.kind != _KIND or not found.shardlist:
            self._refuse(f"its __kind__ is {found.kind!r}, with {len(found.shardlist)} shards")
        return found

    def _refuse(self, why: str) -> NoReturn:
        message = (
            f"{self.path!r} is no list of shards of wids ({_KIND}): {why}. Open the tar files themselves"
        )
        raise UnsupportedFormat(message)


def wids_claim(look: Look) -> Claim:
    """Return the shards of a list of wids.

    Raises:
        InvalidArgument: the spec has no path, or the user gave another format.
        DataNotFound: the list or a shard is not there.
        UnsupportedFormat: it is not a list of wids, or a shard does not lie below its folder.
    """
    if not look.rest:
        message = f"{look.path!r} is not complete: the form is {_SCHEME}PATH, as in 'wids:shards/index.json'"
        raise InvalidArgument(message)
    listed = WidsFiles(paths.absolute(os.path.expanduser(look.rest)), look.allow)
    form = format_of_spec(look, "tar")
    return Claim(format=form, found=listed.found(), detail=listed)
