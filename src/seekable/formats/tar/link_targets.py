"""The members that hard links of an archive lead to, found by hashes of names."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["LinkTargets"]


@final
class LinkTargets:
    """The members of an archive so far: where the payload of a name lies.

    Archives without links, which are most of them, cost 8 bytes a member here: the arrays of payloads and
    sizes are those of the walk. The first link makes a dict of them.
    """

    __slots__ = ("_by_hash", "_waiting")

    def __init__(self) -> None:
        """Begin before the first member."""
        self._waiting: list[tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]]] = []
        self._by_hash: dict[int, tuple[int, int]] = {}

    def add(
        self,
        names: Sequence[bytes],
        payloads: NDArray[np.uint64],
        sizes: NDArray[np.uint64],
        links: Mapping[int, bytes],
    ) -> int | None:
        """Add the next members, and give each link the payload of the last member before it that it names.

        Args:
            names: the name of each member.
            payloads: the offset of each payload; written to where the member is a link.
            sizes: the size of each payload; written to where the member is a link.
            links: the targets of links, by the number of the member in these arrays, ascending.

        Returns:
            The number of the first link whose target is not before it; None if there is none.
        """
        hashes = np.fromiter(map(hash, names), np.int64, len(names))
        if not links:
            self._waiting.append((hashes, payloads, sizes))
            return None
        self._catch_up()
        done = 0
        for number, target in links.items():
            self._remember(hashes[done:number], payloads[done:number], sizes[done:number])
            done = number
            if (found := self._by_hash.get(hash(target.rstrip(b"/")))) is None:
                return number
            payloads[number], sizes[number] = found
        self._remember(hashes[done:], payloads[done:], sizes[done:])
        return None

    def _catch_up(self) -> None:
        for hashes, payloads, sizes in self._waiting:
            self._remember(hashes, payloads, sizes)
        self._waiting.clear()

    def _remember(
        self, hashes: NDArray[np.int64], payloads: NDArray[np.uint64], sizes: NDArray[np.uint64]
    ) -> None:
        pairs = zip(payloads.tolist(), sizes.tolist(), strict=True)
        self._by_hash.update(zip(hashes.tolist(), pairs, strict=True))
