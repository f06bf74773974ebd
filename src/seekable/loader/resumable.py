"""What everything that goes through a dataset in steps has: where it is, and how it goes on elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from seekable._arguments import checked_count
from seekable.dataset.dataset import Dataset
from seekable.errors import EndlessDataset
from seekable.loader.arguments import checked_resume
from seekable.loader.course import Course
from seekable.nodes.contract import Node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seekable.loader.arguments import Resume
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
        pipeline = self._course.dataset
        return Dataset(pipeline) if isinstance(pipeline, Node) else pipeline

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

    @property
    def of_state(self) -> Any:
        """What a state that is taken now is of: the dataset, or what goes on by rows in its place."""
        return self._course.of_state

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

    def state_dict(self, *, partial: bool = False, rows: bool = True) -> dict[str, Any]:
        """Return the state after the batches delivered so far: a new dict, JSON-safe.

        Batches that were made ahead do not count. The state loads on any number of ranks, with any batch
        size. The state of a dataset is the same on all ranks.

        Args:
            partial: return this rank's share of the state, where ranks have different ones: those of a stream
                have lanes of their own, which ``sk.save_state`` and ``sk.load_state`` put together.
            rows: add the description of the pipeline, with the names of its files, as one string. Another
                pipeline needs it to load the state with ``resume="rows"``. The string is made once for a
                pipeline. Without it the state of a dataset has fewer than 200 bytes.

        Raises:
            NotResumable: a stage of a stream could not go on from it, or this is a share and ``partial`` was
                not said.
        """
        return self._course.document(partial=partial, rows=rows)

    def load_state_dict(self, state: Mapping[str, Any], *, resume: Resume = "exact") -> None:
        """Go on where a state was taken: the next batches are those that would have followed.

        Args:
            state: what ``state_dict`` returned, also after a JSON round trip; it is not changed. ``{}``
                stands for no state and changes nothing. A live iterator moves there too.
            resume: ``"exact"``, the order continues record for record. With ``"rows"`` the state may be of
                another pipeline over the same sources, or fewer files of them: each source gives what was in
                flight, then the rest of its begun epoch in its old order, then its next epoch in the new one.

        Raises:
            StateMismatch: the state is of another pipeline, or of other data; by rows, of sources that are
                not there any more, or the state carries no description of its pipeline.
            CorruptState: the document is not a state.
            InvalidArgument: by rows, something above a mixture hides which source gave how much, or rows were
                chosen by content that is not known any more.

        Example:
            >>> import seekable as sk
            >>> words = sk.from_sequence("abcdef")
            >>> loader = sk.Loader(words, batch_size=2, collate=list, prefetch=0)
            >>> next(iter(loader))
            ['a', 'b']
            >>> again = sk.Loader(words.map(str.upper).shuffle(seed=1), batch_size=3, collate=list)
            >>> again.load_state_dict(loader.state_dict(), resume="rows")
            >>> list(again)
            [['C', 'D', 'E'], ['F']]
        """
        self._runs.load(state, resume=checked_resume(resume))

    def skip_batches(self, count: int) -> None:
        """Leave out the next batches, at most to the end of the run; they count as steps.

        After a loss spike, say.
        """
        self._runs.skip(checked_count("count", count, least=0))
