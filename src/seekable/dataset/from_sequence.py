"""Datasets over sequences: objects with a length and items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable._arguments import checked_version
from seekable.dataset.dataset import Dataset
from seekable.errors import WrongType
from seekable.nodes.sequence_source import SequenceSource

if TYPE_CHECKING:
    from seekable.nodes.sequence_source import SupportsItems

__all__ = ["from_sequence"]


def from_sequence(sequence: SupportsItems, *, version: str | int | None = None) -> Dataset:
    """Return a dataset over a sequence: a list, an array, another library's dataset.

    If it has ``__getitems__`` (PyTorch's name for reading a list of rows together), that is called.

    Args:
        sequence: an object with ``__len__`` and ``__getitem__`` of rows. It must not change, and it is
            pickled with
            the dataset.
        version: enters the fingerprint, beside the type's name and the length, which is all that a state can
            check.

    Raises:
        WrongType: ``sequence`` has no length or no items, or ``version`` is no str or int.

    Example:
        >>> import seekable as sk
        >>> ds = sk.from_sequence(["a", "b", "c"])
        >>> len(ds), ds[-1], list(ds[::2])
        (3, 'c', ['a', 'c'])
    """
    if not (hasattr(sequence, "__len__") and hasattr(sequence, "__getitem__")) or isinstance(sequence, dict):
        message = f"from_sequence needs __len__ and __getitem__ by row (got {type(sequence).__name__})"
        raise WrongType(message)
    checked_version(version)
    return Dataset(SequenceSource(sequence, version))
