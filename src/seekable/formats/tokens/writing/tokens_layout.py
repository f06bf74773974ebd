"""The files of one part of a token store, and the types of what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np

__all__ = ["StoreLayout", "part_suffixes"]


def part_suffixes(aligned: Iterable[str], *, idx: bool) -> tuple[str, ...]:
    """Return the suffixes of the files of a part without their dots, that of the tokens first.

    Args:
        aligned: the names of the arrays beside the tokens.
        idx: True for Megatron's index.

    Example:
        >>> part_suffixes(["loss_mask"], idx=True)
        ('bin', 'lengths', 'sources', 'loss_mask', 'idx', 'facts')
    """
    return ("bin", "lengths", "sources", *aligned, *(["idx"] if idx else []), "facts")


@dataclass(frozen=True, slots=True)
class StoreLayout:
    """The arrays of a token store, and their types."""

    dtype: np.dtype[Any]
    """The type of a token, little-endian."""

    aligned: tuple[tuple[str, np.dtype[Any]], ...]
    """The name of each array beside the tokens, and the type of an element, little-endian."""

    idx: bool
    """True for Megatron's index beside the tokens of each part."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of the files of a part without their dots, that of the tokens first."""
        return part_suffixes([name for name, _ in self.aligned], idx=self.idx)
