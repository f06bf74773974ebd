"""The open files of many slices at once, so that slices of many files are copied as those of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seekable._typing import Int64s
    from seekable.storage.mapped import MappedFile, View

__all__ = ["FileMaps", "alike"]

_TOGETHER = 1 << 12
"""The slices that are copied together: of more, too many files would be mapped at once."""


def alike(kinds: Int64s) -> Iterator[Any]:
    """Yield the indices of slices of one kind, as slices or arrays, at most 4,096 at a time.

    Args:
        kinds: the kind of each slice, int64.

    Example:
        >>> [np.arange(3)[some].tolist() for some in alike(np.array([5, 7, 5]))]
        [[0, 2], [1]]
    """
    for low in range(0, len(kinds), _TOGETHER):
        some = slice(low, low + _TOGETHER)
        of = kinds[some]
        if (of == of[0]).all():
            yield some
        else:
            yield from (low + np.flatnonzero(of == kind) for kind in np.unique(of))


@final
class FileMaps:
    """The open files of some slices, each opened once."""

    def __init__(self, files: Int64s, mapped: Callable[[int], MappedFile]) -> None:
        """Open each file once.

        Args:
            files: the number of each slice's file, at least one.
            mapped: returns the map of a file after a check.
        """
        self._numbers: list[int] = []
        if (files == files[0]).all():
            self._maps = [mapped(int(files[0]))]
            return
        present, numbers = np.unique(files, return_inverse=True)
        self._maps = [mapped(file) for file in present.tolist()]
        self._numbers = numbers.tolist()

    @property
    def views(self) -> View | list[View]:
        """The bytes of the one file, or a list with the bytes of the file of each slice."""
        views = [mapped.view for mapped in self._maps]
        return [views[number] for number in self._numbers] if self._numbers else views[0]

    @property
    def sizes(self) -> Int64s:
        """The number of bytes of the file of each slice; one number if all are in one file."""
        sizes = np.array([mapped.size for mapped in self._maps])
        return sizes[self._numbers] if self._numbers else sizes

    def of(self, number: int) -> MappedFile:
        """Return the file of a slice."""
        return self._maps[self._numbers[number] if self._numbers else 0]
