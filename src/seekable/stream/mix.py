"""Several streams in given proportions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import numpy as np

from seekable._cached import cached
from seekable.dataset.show import listed
from seekable.order.keys import derive, kind_key
from seekable.order.mixture import Mixture
from seekable.stream.several import SeveralInputs, numbered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seekable.stream.base import Stream
    from seekable.stream.contract import Token
    from seekable.stream.flow import Flow

__all__ = ["MixItems"]

_KIND = kind_key("mix")
_FIRST, _AT_ONCE = 1024, 4096
"""Draws that are labelled in one go: fewer at first, so that nobody waits for the rest."""

Schedule = tuple[tuple[int, tuple[int, ...]], ...]


@final
@dataclass(frozen=True, eq=False, repr=False)
class MixItems(SeveralInputs):
    """Draws each item of a lane from one of the parts, as the mixture of datasets does.

    A part that has ended is drawn no more: from that draw on the others share what was its. Tokens are
    (number of the part, token).
    """

    parts: tuple[Stream, ...]
    names: tuple[str, ...] | None
    schedule: Schedule
    seed: int
    stop: Literal["first", "all"]

    kind: ClassVar[str] = "mix"
    call: ClassVar[str] = "mix()"

    @property
    def endless(self) -> bool:
        """Where all parts that are drawn are, or one of them is and it stops with the last."""
        drawn = [
            part.endless for part, weights in zip(self.parts, self._columns, strict=True) if any(weights)
        ]
        return all(drawn) if self.stop == "first" else any(drawn)

    def arguments(self) -> dict[str, Any]:
        """Names, seed, stop and the weights, from which draw of a lane on."""
        schedule = [[start, list(weights)] for start, weights in self.schedule]
        return {"names": self.names, "schedule": schedule, "seed": self.seed, "stop": self.stop}

    def shown(self, inputs: Sequence[str]) -> str:
        """Return the call."""
        weights = [f"[{listed([str(weight) for weight in weights])}]" for _, weights in self.schedule]
        given = weights[0] if len(weights) == 1 else f"<schedule of {len(weights)}>"
        return f"mix([{listed(inputs)}], weights={given}, seed={self.seed}, stop={self.stop!r})"

    def items(self, flow: Flow) -> Iterator[tuple[Token, Any]]:
        """Draw."""
        memory = flow.memory
        draw = memory.get("draw", 0)
        nexts = [iter(source).__next__ for source in flow.inputs]
        count = _FIRST
        while (labels := self.labels(memory, flow.lane, draw, count)) is not None:
            count = _AT_ONCE
            for label in labels:
                try:
                    token, item = nexts[label]()
                except StopIteration:
                    if self.stop == "first":
                        return
                    memory["ended"] = [*memory.get("ended", ()), label]
                    memory["since"] = draw
                    break
                memory["draw"] = draw = draw + 1
                yield (label, token), item

    def gone_by(self, flow: Flow) -> int:
        """Return the least epochs of those parts that are still drawn, or will be."""
        begun, ended = self._begun(flow.memory.get("draw", 0)), flow.memory.get("ended", ())
        weights = [column[begun:] for column in self._columns]
        drawn = (i for i, column in enumerate(weights) if any(column) and i not in ended)
        return min((flow.inputs[i].epochs for i in drawn), default=0)

    def origins(self, token: Token) -> Sequence[tuple[int, Token]]:
        """Return the item of one part."""
        return (numbered(self, token),)

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return it."""
        return items[0]

    def labels(self, memory: dict[str, Any], lane: int, draw: int, count: int = _FIRST) -> list[int] | None:
        """Return whose the next draws are; None if nobody's."""
        ended = frozenset(memory.get("ended", ()))
        since = memory.get("since", 0)
        mixture = self._mixture(ended, since)
        if mixture is None:
            return None
        draws = np.arange(draw - since, draw - since + count, dtype=np.int64)
        labels, _ = mixture.route(draws * self.lanes + lane)
        drawn: list[int] = labels.tolist()
        return drawn

    def _mixture(self, ended: frozenset[int], since: int) -> Mixture | None:
        """Return the order of the parts that have not ended, from a draw on."""
        if (ended, since) not in self._mixtures:
            left = [
                (start, tuple(0 if i in ended else weight for i, weight in enumerate(weights)))
                for start, weights in self.schedule
            ]
            begun = self._begun(since)
            left = [(0, left[begun][1]), *((start - since, weights) for start, weights in left[begun + 1 :])]
            there = [(start * self.lanes, weights) for start, weights in left if any(weights)]
            key = derive(_KIND, self.seed, len(ended))
            self._mixtures[ended, since] = (
                Mixture(((0, there[0][1]), *there[1:]), key=key, length=None, lanes=self.lanes)
                if there
                else None
            )
        return self._mixtures[ended, since]

    def _begun(self, draw: int) -> int:
        """Return the number of the weights that hold at a draw."""
        return max(i for i, (start, _) in enumerate(self.schedule) if start <= draw)

    @property
    def _columns(self) -> list[tuple[int, ...]]:
        """For each part, its weights."""
        return list(zip(*(weights for _, weights in self.schedule), strict=True))

    @cached
    def _mixtures(self) -> dict[tuple[frozenset[int], int], Mixture | None]:
        return {}
