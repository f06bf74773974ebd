"""What stages over one input share, and those that read forward only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable.stream.base import Stream
from seekable.stream.contract import Inner, Leaf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.stream.contract import Stage, Token

__all__ = ["ForwardOnly", "OneInput", "SameItems", "SameTokens"]


class OneInput(Stream, Inner):
    """A stage over one input, in as many lanes."""

    source: Stream

    @property
    def inputs(self) -> tuple[Stage, ...]:
        """The one."""
        return (self.source,)

    @property
    def lanes(self) -> int:
        """As many as the input has."""
        return self.source.lanes

    @property
    def endless(self) -> bool:
        """As the input."""
        return self.source.endless


class ForwardOnly(Stream, Leaf):
    """A stage that reads from its start on, and again from there where that is allowed."""

    lane_count: int
    replay: bool
    """Whether items may be counted and skipped."""

    @property
    def lanes(self) -> int:
        """As many as asked for."""
        return self.lane_count

    @property
    def endless(self) -> bool:
        """Never said: it ends, or there is no telling."""
        return False

    @property
    def indexed(self) -> bool:
        """With ``replay``."""
        return self.replay


class SameTokens(OneInput):
    """A stage that makes each item of the input's item of the same token."""

    def origins(self, token: Token) -> Sequence[tuple[int, Token]]:
        """Return the input's item of the same token."""
        return ((0, token),)


class SameItems(SameTokens):
    """A stage that passes items of its input on as they are, with their tokens."""

    def remake(self, token: Token, items: Sequence[Any]) -> Any:
        """Return the input's item."""
        return items[0]
