"""What everything that goes through a dataset in steps has: where it is, and how it goes on elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from seekable.dataset.arguments import checked_count
from seekable.errors import EndlessDataset, InvalidArgument
from seekable.loader.course import Course

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seekable.loader.runs import Runs

__all__ = ["Resumable"]

AnyCourse = TypeVar("AnyCourse", bound=Course)


class Resumable(Generic[AnyCourse]):
    """A course and its runs: what ``sk.save_state`` and ``sk.load_state`` work on."""

    _course: AnyCourse
    _runs: Runs

    @property
    def dataset(self) -> Any:
        """What is delivered: the Dataset, or the Stream."""
        return self._course.dataset

    @property
    def step(self) -> int:
        """Batches delivered and skipped so far."""
        return self._course.cursor.step

    @property
    def epoch(self) -> int:
        """The first epoch of the present run; it moves on when the run's end was seen."""
        return self._course.cursor.epoch

    @property
    def rank(self) -> int:
        """Which of the ranks this one is."""
        return self._course.steps.rank

    @property
    def world_size(self) -> int:
        """How many ranks share the batches."""
        return self._course.steps.world_size

    def __len__(self) -> int:
        """Return the number of batches of a whole run.

        Raises:
            EndlessDataset: a run has no end.
        """
        count = self._course.steps.count
        if count is None:
            message = "a run over an endless dataset has no length: bound it with steps="
            raise EndlessDataset(message)
        return count

    def state_dict(self, *, partial: bool = False) -> dict[str, Any]:
        """Return the state after the batches delivered so far: a new, JSON-safe dict.

        Batches that were made ahead do not count. The state loads on any number of ranks, with any batch
        size. Of a dataset it has fewer than 200 bytes, and is the same on all ranks.

        Args:
            partial: return this rank's share of it, where ranks have different ones: those of a stream have
                lanes of their own, which ``sk.save_state`` and ``sk.load_state`` put together.

        Raises:
            NotResumable: a stage of a stream could not go on from it, or this is a share and ``partial`` was
                not said.
        """
        return self._course.document(partial=partial)

    def load_state_dict(self, state: Mapping[str, Any], *, resume: Literal["exact"] = "exact") -> None:
        """Go on where a state was taken: the next batches are those that would have followed.

        Args:
            state: what ``state_dict`` returned, also after a JSON round trip; it is not changed. An empty
                one changes nothing. A live iterator moves there too.
            resume: ``"exact"``, the order continues record for record.

        Raises:
            StateMismatch: the state is of another pipeline, or of other data.
            CorruptState: the document is not a state.
        """
        if resume != "exact":
            message = f"resume must be 'exact' (got {resume!r})"
            raise InvalidArgument(message)
        self._runs.load(state)

    def skip_batches(self, count: int) -> None:
        """Leave out the next batches, at most to the end of the run; they count as steps.

        After a loss spike, say.
        """
        self._runs.skip(checked_count("count", count, least=0))
