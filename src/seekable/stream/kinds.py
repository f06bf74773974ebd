"""The classes of stages by kind, for streams of which only a description is at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.stream.batch import BatchItems
from seekable.stream.bucket import Bucket
from seekable.stream.chain import Chain
from seekable.stream.filter import FilterItems
from seekable.stream.flatten import Flatten
from seekable.stream.map import MapItems
from seekable.stream.mix import MixBounded, MixItems
from seekable.stream.overlay import Overlay
from seekable.stream.pack import PackBestFit, PackConcat
from seekable.stream.repeat import RepeatItems
from seekable.stream.shuffle import ShuffleItems
from seekable.stream.take import SkipSlots, TakeSlots
from seekable.stream.zip import ZipItems

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seekable.stream.stage import Inner

__all__ = ["OWN_KINDS"]

OWN_KINDS: Mapping[str, type[Inner]] = {
    each.kind: each
    for each in (
        *(BatchItems, Bucket, Chain, FilterItems, Flatten, MapItems, MixBounded, MixItems, Overlay),
        *(PackBestFit, PackConcat, RepeatItems, ShuffleItems, SkipSlots, TakeSlots, ZipItems),
    )
}
"""The stages of the library that take items from other stages."""
