"""Pipelines whose states were taken in this process: what a state is of, where it does not say so itself."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from seekable.dataset.base import Dataset
    from seekable.stream.base import Stream

__all__ = ["known", "remember"]

_HELD = 8
"""The last pipelines, which are kept although nobody else has them any more: descriptions, no data."""

_alive: WeakValueDictionary[str, Dataset | Stream] = WeakValueDictionary()
_last: OrderedDict[str, Dataset | Stream] = OrderedDict()


def remember(fingerprint: str, pipeline: Dataset | Stream) -> None:
    """Remember which pipeline a fingerprint is of."""
    _alive[fingerprint] = pipeline
    _last[fingerprint] = pipeline
    _last.move_to_end(fingerprint)
    while len(_last) > _HELD:
        _last.popitem(last=False)


def known(fingerprint: str) -> Dataset | Stream | None:
    """Return the pipeline of a fingerprint, if its state was taken here and it is still there.

    Example:
        >>> known("xxh3:0") is None
        True
    """
    return _alive.get(fingerprint)
