"""The pass of a trainer in which a state was taken, where the trainer counts passes over the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from seekable.errors import CorruptState

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TrainerPass"]


@dataclass(frozen=True, slots=True)
class TrainerPass:
    """A pass of a trainer, and how often a loader came to the end of its run in it.

    Of several loaders, the shorter ones end within a pass: a trainer then begins them anew, or goes on
    without them. Where a loader stands does not say in which pass that was.

    Example:
        >>> TrainerPass(2).ended_once_more()
        TrainerPass(number=2, ended=1, over=True)
        >>> TrainerPass.parse({"number": 2, "ended": 1}) == TrainerPass(2).ended_once_more().with_batch()
        True
    """

    number: int
    """The number of the pass, which the trainer has announced."""

    ended: int = 0
    """The number of runs that have ended in the pass."""

    over: bool = False
    """True if nothing was delivered since the last of these ended."""

    def ended_once_more(self) -> TrainerPass:
        """Return the pass after the end of a run."""
        return replace(self, ended=self.ended + 1, over=True)

    def with_batch(self) -> TrainerPass:
        """Return the pass after the delivery of a batch."""
        return replace(self, over=False) if self.over else self

    def document(self) -> dict[str, Any]:
        """Return a new JSON-safe dict."""
        over = {"over": True} if self.over else {}
        return {"number": self.number, "ended": self.ended, **over}

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> TrainerPass:
        """Return the pass of a document.

        Raises:
            CorruptState: the document is not what ``document`` returned.
        """
        number, ended = document.get("number", -1), document.get("ended", -1)
        over = document.get("over", True)
        if not (type(number) is type(ended) is int and min(number, ended) >= 0 and over is True):
            message = (
                f"a state's 'pass' has a 'number' and how many runs 'ended' in it (got {document!r:.100})"
            )
            raise CorruptState(message)
        return cls(number, ended, "over" in document)
