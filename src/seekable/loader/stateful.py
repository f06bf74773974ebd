"""A loader as frameworks save and load it: one state for all ranks, in one text.

Each of several ranks has lanes of its own of a stream. Frameworks write the state of one rank, or one entry
for a name, so the ranks put their shares together whenever a state is taken. It is one text, because
``torch.distributed.checkpoint`` takes dicts and lists apart, and finds again only what has the same shape.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, final

from msgspec import structs

from seekable.dataset.dataset import Dataset
from seekable.errors import CorruptState, NotResumable, SeekableError
from seekable.loader.checkpoint_files import in_words
from seekable.loader.positioned import pass_setter
from seekable.state.document import StreamState, merged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seekable.loader.iteration import EpochSetter
    from seekable.loader.positioned import Positioned

__all__ = ["StatefulLoader", "put_together", "whole_state"]

_KEY = "state"
"""The one key of a state as frameworks have it."""


@final
class StatefulLoader:
    """A loader whose state is the same on all ranks, and loads on any number of them.

    Frameworks take it as a loader, and as an object with a state: Lightning, Accelerate and
    ``torch.distributed.checkpoint``.

    Args:
        loader: the ``sk.Loader`` of this rank.
        group: the process group of ``torch.distributed`` that puts the state together; None for all
            processes. It has each rank of the loader at least once.
    """

    def __init__(self, loader: Any, group: Any) -> None:
        # Its class makes this object, and modules do not name each other.
        self.loader = loader
        """The loader of this rank: its ``step``, ``skip_batches`` and the rest."""
        self._group = group
        self._checked = False

    @property
    def dataset(self) -> Any:
        """The Dataset or the Stream that is delivered."""
        return self.loader.dataset

    @property
    def batch_size(self) -> int | None:
        """The number of records in a batch of this rank; None where the records themselves are delivered."""
        size: int | None = self.loader.batch_size
        return size

    @property
    def sampler(self) -> EpochSetter:
        """An object whose ``set_epoch(k)`` lets run ``k`` come next; trainers look for this name."""
        return pass_setter(self.loader)

    def __iter__(self) -> Iterator[Any]:
        """Begin the next run of the loader; the first time, all ranks try that a state can be taken.

        Raises:
            NotResumable: a state of all ranks could not be taken, or not be resumed from.
        """
        if not self._checked:
            whole_state(self.loader, self._group)
            self._checked = True
        return iter(self.loader)

    def __len__(self) -> int:
        """Return the number of batches of a whole run.

        Raises:
            EndlessDataset: a run has no end, or is over a stream without ``steps=``.
        """
        return len(self.loader)

    def state_dict(self) -> dict[str, str]:
        """Return the state of all ranks after the batches delivered so far. All of the group call it.

        Raises:
            NotResumable: the ranks are at different batches or have different pipelines, some are not in the
                group, or a stage of a stream could not go on from the state.
        """
        return {_KEY: json.dumps(whole_state(self.loader, self._group))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a state was taken, by any number of ranks; ``{}`` changes nothing.

        Args:
            state: what ``state_dict`` of this class returned, or of a ``sk.Loader``.

        Raises:
            StateMismatch: the state is of another pipeline, or of other data.
            CorruptState: the document is not a state, or lacks lanes.
        """
        text = state.get(_KEY)
        if text is None:
            self.loader.load_state_dict(state)
            return
        try:
            document = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            message = f"{_KEY!r} must be the text that state_dict() returned (got {text!r:.100}): {error}"
            raise CorruptState(message) from None
        self.loader.load_state_dict(document)

    def __repr__(self) -> str:
        """Show the loader."""
        return f"{self.loader!r}.stateful()"


def whole_state(loader: Positioned, group: Any = None) -> dict[str, Any]:
    """Return the state of all ranks of a loader: the same dict on each, JSON-safe.

    Of a dataset, and of one rank, it is at hand. Else all processes of the group call it.

    Raises:
        NotResumable: the shares do not make a state; each process of the group raises it.
    """
    if isinstance(loader.dataset, Dataset) or loader.world_size == 1:
        return loader.state_dict()
    said: dict[str, Any] = {"rank": loader.rank, "of": loader.world_size}
    pipeline = None
    try:
        share = loader.state_dict(partial=True)
    except SeekableError as error:
        # The others wait for this rank, and are to hear of it.
        said["error"] = str(error)
    else:
        # The same on all ranks, and long.
        pipeline = share.pop("pipeline", None)
        said["state"] = share
    shares = [json.loads(text) for text in _exchanged(loader, json.dumps(said), group)]
    return structs.replace(put_together(shares, loader.world_size), pipeline=pipeline).document()


def _exchanged(loader: Positioned, text: str, group: Any) -> list[str]:
    """Return the texts of all processes of a group."""
    module = sys.modules.get("torch.distributed")
    if module is None or not module.is_available() or not module.is_initialized():
        raise NotResumable(
            f"rank {loader.rank} of {loader.world_size} has its own lanes of the stream, and "
            f"torch.distributed, by which the ranks put their states together, is not initialised: call "
            f"init_process_group() first, or let all ranks call sk.save_state(folder, loader)"
        )
    texts: list[Any] = [None] * module.get_world_size(group)
    module.all_gather_object(texts, text, group=group)
    return texts


def put_together(shares: list[dict[str, Any]], count: int) -> StreamState:
    """Return the state that the shares of all ranks make together.

    Raises:
        NotResumable: shares are missing, or differ where they must be the same.
    """
    for share in shares:
        if "error" in share:
            raise NotResumable(f"rank {share['rank']} of {share['of']} has no state: {share['error']}")
    of_rank: dict[int, dict[str, Any]] = {}
    for share in shares:
        rank, first = share["rank"], of_rank.setdefault(share["rank"], share)
        if share != first:
            raise NotResumable(
                f"two processes with the records of rank {rank} have different states ({_place(first)}, "
                f"and {_place(share)}): their loaders must have the same arguments, and deliver alike"
            )
    missing = sorted({*range(count)}.difference(of_rank))
    if missing or len(of_rank) != count or any(share["of"] != count for share in shares):
        there = ", ".join(sorted({f"{share['rank']} of {share['of']}" for share in shares}))
        lacks = f"; {in_words(missing)} missing" if missing else ""
        raise NotResumable(
            f"a state needs the {count} ranks of the stream (there are {there}{lacks}): pass sk.Loader the "
            f"rank and world_size of sk.distributed(...), and stateful(group=...) a process group of all"
        )
    ranks = [of_rank[rank]["state"] for rank in range(count)]
    differs = next((share for share in of_rank.values() if _place(share) != _place(of_rank[0])), None)
    if differs is not None:
        raise NotResumable(
            f"rank {differs['rank']} is at {_place(differs)}, and rank 0 at {_place(of_rank[0])}: all ranks "
            f"take a state after the same batch of the same pipeline"
        )
    return merged({f"of rank {rank}": StreamState.parse(state) for rank, state in enumerate(ranks)})


def _place(share: dict[str, Any]) -> str:
    """Return in words where a share was taken."""
    state = share["state"]
    return f"step {state['step']} of the pipeline {state['fingerprint']}"
