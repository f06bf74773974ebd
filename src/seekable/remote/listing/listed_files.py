"""The files of a listing, in columns: a million files take about 100 MB, and no object is made for each."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["Columns", "ListedFiles", "Status"]

Status = tuple[int, int]
"""The number of bytes of an object, and the number made of its etag."""


Columns = tuple["NDArray[np.int64]", "NDArray[np.int64]"]
"""The sizes and the identities of files."""


@final
class ListedFiles(Mapping[str, Status]):
    """Sizes and identities of files by their names, in the order in which they were added.

    Example:
        >>> files = ListedFiles()
        >>> files.extend(["a", "b"], [5, 7], [1, 2])
        >>> len(files), files["b"], files.columns(["b", "a"])[0].tolist()
        (2, (7, 2), [7, 5])
    """

    __slots__ = ("_identities", "_names", "_rows", "_sizes")

    def __init__(self) -> None:
        """Begin with a listing of no files."""
        self._names: list[str] = []
        self._sizes, self._identities = array("q"), array("q")
        self._rows: dict[str, int] | None = None

    @classmethod
    def of(cls, names: Sequence[str], sizes: NDArray[np.int64], identities: NDArray[np.int64]) -> ListedFiles:
        """Return files with these sizes and identities."""
        found = cls()
        found._names = list(names)
        found._sizes.frombytes(sizes.astype(np.int64).tobytes())
        found._identities.frombytes(identities.astype(np.int64).tobytes())
        return found

    def extend(self, names: Iterable[str], sizes: Iterable[int], identities: Iterable[int]) -> None:
        """Add files that are not there yet.

        Args:
            names: their names.
            sizes: their numbers of bytes.
            identities: the numbers made of their etags.
        """
        self._names.extend(names)
        self._sizes.extend(sizes)
        self._identities.extend(identities)
        self._rows = None

    def add(self, others: ListedFiles) -> None:
        """Add the files of another listing."""
        self.extend(others._names, others._sizes, others._identities)

    @property
    def names(self) -> Sequence[str]:
        """The names of the files."""
        return self._names

    @property
    def has_empty(self) -> bool:
        """True if a file has no bytes."""
        return bool((np.frombuffer(self._sizes, np.int64) == 0).any()) if self._names else False

    def columns(self, names: Sequence[str]) -> Columns:
        """Return the sizes and the identities of some files, int64.

        Raises:
            KeyError: there is no such file.
        """
        if not names:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        sizes, identities = (np.frombuffer(each, np.int64) for each in (self._sizes, self._identities))
        if len(names) == len(self._names) and list(names) == self._names:
            return sizes.copy(), identities.copy()
        of_names = self._row_of()
        rows = np.fromiter((of_names[name] for name in names), np.int64, len(names))
        return sizes[rows], identities[rows]

    def taken(self, names: Sequence[str]) -> ListedFiles:
        """Return some of the files, in another order."""
        return ListedFiles.of(names, *self.columns(names))

    def __getitem__(self, name: str) -> Status:
        row = self._row_of()[name]
        return self._sizes[row], self._identities[row]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _row_of(self) -> dict[str, int]:
        if self._rows is None:
            self._rows = {name: row for row, name in enumerate(self._names)}
        return self._rows
