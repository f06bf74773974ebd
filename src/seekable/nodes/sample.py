"""Some rows, drawn once and for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np

from seekable._cached import cached
from seekable.errors import InvalidArgument
from seekable.nodes.ascending import Ascending
from seekable.nodes.graph import known_size, must_be_steady
from seekable.nodes.routers import EachRouter
from seekable.order.keys import derive, kind_key
from seekable.order.permutation import permute

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable._typing import Int64s
    from seekable.nodes.contract import Node
    from seekable.nodes.graph import Router


__all__ = ["Sample"]

_KIND = kind_key("sample")


@final
@dataclass(frozen=True, eq=False, repr=False)
class Sample(Ascending):
    """``count`` distinct rows, ascending: the first of a permutation of all, so each set is as likely.

    Pickled it is its seed; the rows take 8 bytes each where they are used.
    """

    child: Node
    count: int
    seed: int

    kind: ClassVar[str] = "sample"

    def __post_init__(self) -> None:
        """Refuse more rows than there are, and rows that are not the same in each epoch."""
        size = known_size(self.child, "sample()")
        must_be_steady(self.child, "sample()")
        if self.count > size:
            message = (
                f"sample() draws each row once at most: there are {size:,} records (got n={self.count:,})"
            )
            raise InvalidArgument(message)

    @property
    def size(self) -> int:
        """As many rows as were asked for."""
        return self.count

    def arguments(self, upto: int | None) -> dict[str, Any]:
        """The number of rows and the seed."""
        return {"count": self.count, "seed": self.seed}

    def shown(self, children: Sequence[str]) -> str:
        """Return the method call."""
        return f"{children[0]}.sample({self.count}, seed={self.seed})"

    @classmethod
    def router(cls, nodes: Sequence[Sample]) -> Router:
        """Look the rows of one node after another up."""
        return EachRouter(nodes)

    @cached
    def chosen(self) -> Int64s:
        """The rows."""
        if not self.count:
            return np.empty(0, dtype=np.int64)
        size = known_size(self.child, "sample()")
        key = np.array([derive(_KIND, self.seed)], dtype=np.uint64)
        return np.sort(permute(np.arange(self.count, dtype=np.int64), size, key))

    def chosen_one(self, row: int) -> int:
        """Return one of the rows."""
        return int(self.chosen[row])
