"""The nodes at the bottom of a Lhotse graph: they read positions, or items of a stream.

Lhotse keeps the cursor of a pass in the node, not in its iterator. So a node has one pass at a time: a second
one that runs beside it is noticed, and then no state is given.
"""

from __future__ import annotations

import copy
import operator
import os
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, final

import numpy as np
from lhotse.cut import Cut
from lhotse.dataset.dataloading import LHOTSE_USE_WORKER_PARTITION, get_worker_partition
from lhotse.lazy import (
    IteratorNode,
    LazyIteratorChain,
    attach_graph_origin,
    get_graph_origin,
    normalize_graph_token,
)
from torch.utils.data import get_worker_info

from seekable._arguments import POSITIONS, checked_count, out_of_range
from seekable.errors import (
    EndlessDataset,
    InvalidArgument,
    NotResumable,
    OutOfRange,
    StateMismatch,
    WrongType,
)
from seekable.formats.shar.lhotse_cuts import cut_from_record
from seekable.nodes.node import node_of
from seekable.nodes.readahead import reads_ahead
from seekable.stream.iterator import StreamIterator

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seekable.dataset.dataset import Dataset
    from seekable.nodes.graph import Plan
    from seekable.stream.stream import Stream

__all__ = ["DatasetNode", "StreamNode"]

_PLANNED = 4096
"""The number of positions whose order is resolved at a time."""

_AT_ONCE = 64
"""The most records that are read at a time; a pass begins with one, so that a restore reads little ahead."""


class _Node(IteratorNode):  # type: ignore[misc]  # Lhotse has no types
    """Base class for both nodes: shares, one pass at a time, checks of a state."""

    is_checkpointable = True

    def __init__(self, fingerprint: str, shard: tuple[int, int] | None) -> None:
        self._fingerprint = fingerprint
        self._asked_shard = shard
        self._shard: tuple[int, int] | None = None
        self._restored: Mapping[str, Any] | None = None
        self._passes = 0
        self._has_two_passes = False

    @property
    def is_indexed(self) -> bool:
        """True: any item comes again by its token."""
        return self.has_constant_time_access

    @property
    @abstractmethod
    def has_constant_time_access(self) -> bool:
        """True if an item is rebuilt from its token, in a time that does not depend on its position."""

    @abstractmethod
    def __getitem__(self, token: Any) -> Any:
        """Return the cut of a token."""

    @abstractmethod
    def _items(self, state: Mapping[str, Any] | None, shard: tuple[int, int]) -> Iterator[tuple[Any, Any]]:
        """Yield the token and the record of each item of a pass, from a state on; the cursor is kept."""

    @abstractmethod
    def _cursor(self) -> dict[str, Any]:
        """Return the position of the pass, JSON-safe."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the cuts of the next pass, or the rest of the one whose state was loaded.

        Raises:
            StateMismatch: the state is of another worker or rank, or of another number of them.
            WrongType: a record is not a cut.
        """
        state, self._restored = self._restored, None
        shard = self._asked_shard or _share()
        if state is not None:
            _check_share(state, shard)
        self._shard = shard
        self._passes += 1
        self._has_two_passes = False
        number = self._passes
        for token, record in self._items(state, shard):
            self._has_two_passes |= number != self._passes
            yield _with_token(record, token)

    def __add__(self, other: Any) -> LazyIteratorChain:
        """Return both, one after another."""
        return LazyIteratorChain(self, other)

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the items that the last pass has yielded: a new dict, JSON-safe.

        Raises:
            NotResumable: two passes over this node run side by side, and the node has one position.
        """
        if self._has_two_passes:
            message = (
                "two iterators over one CutSet ran side by side, for example in CutSet.mux(cuts, cuts), and "
                "Lhotse keeps one position for both: call cut_set() once for each, or use sk.mix"
            )
            raise NotResumable(message)
        if self._restored is not None:
            return dict(self._restored)
        shard = None if self._shard is None else list(self._shard)
        return {"fingerprint": self._fingerprint, "shard": shard, **self._cursor()}

    def load_state_dict(self, sd: Mapping[str, Any]) -> None:
        """Let the next pass go on where a state was taken; the state is not changed.

        Raises:
            StateMismatch: the state is of another pipeline, of other data, or of another class of node.
        """
        if sd.get("fingerprint") != self._fingerprint:
            found = sd.get("fingerprint", f"none; it has {sorted(sd)}")
            message = (
                f"the state is of other data, or of another order, than this CutSet: fingerprint expected "
                f"{self._fingerprint}, found {found}. Make the dataset as it was made for the state"
            )
            raise StateMismatch(message)
        self._restored = dict(sd)

    def __getstate__(self) -> Any:
        """Return what is pickled: no pass that is under way."""
        return {**self.__dict__, "_run": None}


@final
class DatasetNode(_Node):
    """The cuts of a dataset by position; a pass is one epoch, or several."""

    def __init__(self, dataset: Dataset, epochs: int | None, shard: tuple[int, int] | None) -> None:
        super().__init__(dataset.fingerprint, shard)
        self._dataset, self._epochs = dataset, epochs
        self._epoch = 0
        self._taken = 0
        self._is_over = False

    @property
    def has_constant_time_access(self) -> bool:
        """True: a position is a token."""
        return True

    @property
    def epoch(self) -> int:
        """The first epoch of the present pass."""
        return self._epoch

    def __len__(self) -> int:
        """Return the number of cuts of a pass over all workers and ranks.

        Raises:
            EndlessDataset: it has no end.
        """
        if self._epochs is None:
            message = "a CutSet with epochs=None has no end, so no len()"
            raise EndlessDataset(message)
        return len(self._dataset) * self._epochs

    def __getitem__(self, token: Any) -> Any:
        """Return the cut at a position of the endless axis; a negative number is a row counted from the end.

        Raises:
            OutOfRange: there is no such position.
            WrongType: the token is not an integer.
        """
        try:
            position = operator.index(token)
        except TypeError:
            message = f"a token of a dataset's CutSet is a position, an integer (got {token!r:.80})"
            raise WrongType(message) from None
        size = node_of(self._dataset).size
        if position < 0 and size is not None:
            position += size
        if not 0 <= position < POSITIONS or size == 0:
            raise OutOfRange(out_of_range(token, size))
        return _with_token(node_of(self._dataset).record(position), position)

    def set_epoch(self, epoch: int) -> None:
        """Begin the next pass with an epoch; a loaded state of another epoch is dropped."""
        checked_count("epoch", epoch, least=0)
        if self._restored is not None and self._restored["epoch"] != epoch:
            self._restored = None
        self._epoch, self._is_over = epoch, False

    def _cursor(self) -> dict[str, Any]:
        return {"epoch": self._epoch, "taken": self._taken}

    def _items(self, state: Mapping[str, Any] | None, shard: tuple[int, int]) -> Iterator[tuple[int, Any]]:
        if state is not None:
            self._epoch, self._taken = state["epoch"], state["taken"]
        else:
            self._epoch += (self._epochs or 1) * self._is_over
            self._taken = 0
        self._is_over = False
        size, (number, count) = node_of(self._dataset).size, shard
        first = self._epoch * (size or 0) + number
        stop = POSITIONS if size is None or self._epochs is None else (self._epoch + self._epochs) * size
        epoch, passes = self._epoch, self._passes
        for taken, item in enumerate(
            self._read(first + self._taken * count, stop if size != 0 else 0, count), start=self._taken + 1
        ):
            if passes == self._passes:
                self._epoch, self._taken = epoch, taken
            yield item
        if passes == self._passes:
            self._is_over = True

    def _read(self, first: int, stop: int, step: int) -> Iterator[tuple[int, Any]]:
        """Yield ``(position, record)`` for each ``step``-th position."""
        at_once = 1
        for positions, plan, ahead in reads_ahead(self._planned(first, stop, step)):
            start = 0
            while start < len(positions):
                end = min(start + at_once, len(positions))
                ahead.read_to(end)
                yield from zip(positions[start:end], plan.slice(start, end).read(), strict=True)
                start, at_once = end, min(2 * at_once, _AT_ONCE)

    def _planned(self, first: int, stop: int, step: int) -> Iterator[tuple[list[int], Plan]]:
        """Yield each ``step``-th position, thousands at a time, and their plans."""
        while first < stop:
            positions = np.arange(first, min(stop, first + _PLANNED * step), step, dtype=np.int64)
            yield positions.tolist(), node_of(self._dataset).plan(positions)
            first += len(positions) * step


@final
class StreamNode(_Node):
    """The cuts of a stream; a pass is the whole stream, or the lanes of this worker."""

    def __init__(self, stream: Stream, shard: tuple[int, int] | None) -> None:
        super().__init__(stream.fingerprint, shard)
        self._stream = stream
        self._run: StreamIterator | None = None
        self.is_checkpointable = stream.checkpointable

    @property
    def has_constant_time_access(self) -> bool:
        """True if no stage of the stream replays."""
        return self._stream.indexed and self._stream.constant_time

    def __getitem__(self, token: Any) -> Any:
        """Return the cut of a token of the stream.

        Raises:
            BadToken: the stream has no such item (a KeyError).
        """
        token = normalize_graph_token(token)
        return _with_token(self._stream[token], token)

    def __len__(self) -> int:
        """Refuse: how many items a stream has is known at its end.

        Raises:
            EndlessDataset: always.
        """
        message = "the number of items of a stream is known at its end only, so a CutSet of it has no len()"
        raise EndlessDataset(message)

    def _cursor(self) -> dict[str, Any]:
        return {"stream": {} if self._run is None else self._run.state_dict(rows=False)}

    def _items(self, state: Mapping[str, Any] | None, shard: tuple[int, int]) -> Iterator[tuple[Any, Any]]:
        number, count = shard
        if count > self._stream.lanes:
            message = (
                f"{count} workers and ranks cannot share {self._stream.lanes} lanes: say lanes= to "
                f"ds.stream(), or take fewer workers"
            )
            raise InvalidArgument(message)
        run = self._run = StreamIterator(self._stream.stage, range(number, self._stream.lanes, count))
        if state is not None:
            run.load_state_dict(state["stream"])
        for item in run:
            yield run.token, item


def _share() -> tuple[int, int]:
    """Return the number of this process's share of a pass, and how many shares there are.

    Lhotse has workers share a pass only after its worker_init_fn was called with a rank. Without that, each
    worker of a DataLoader would deliver every cut.
    """
    if os.environ.get(LHOTSE_USE_WORKER_PARTITION) == "1":
        number, count = get_worker_partition()
        return number, count
    worker = get_worker_info()
    return (0, 1) if worker is None else (worker.id, worker.num_workers)


def _check_share(state: Mapping[str, Any], shard: tuple[int, int]) -> None:
    """Refuse the state of another share.

    Raises:
        StateMismatch: it is of another worker or rank, or of another number of them.
    """
    saved = state["shard"]
    if saved is not None and tuple(saved) != shard:
        message = (
            f"the state is of share {saved[0]} of {saved[1]}, and this process has share {shard[0]} of "
            f"{shard[1]}: Lhotse keeps a state for each worker of each rank, so resume with as many of both; "
            f"sk.Loader resumes on any number"
        )
        raise StateMismatch(message)


def _with_token(record: Any, token: Any) -> Any:
    """Return the cut of a record, as an object of its own that holds its token.

    A record that is an object may come again under another token, while this one waits in a buffer.

    Raises:
        WrongType: the record is not a cut, and holds no attributes.
    """
    if isinstance(record, dict):
        item = cut_from_record(record)
    elif isinstance(record, Cut):
        item = object.__new__(type(record))
        item.__dict__.update(record.__dict__)
        if custom := item.__dict__.get("custom"):
            item.__dict__["custom"] = dict(custom)
    else:
        item = copy.copy(record)
    attach_graph_origin(item, token)
    if get_graph_origin(item) != token:
        message = (
            f"a CutSet has cuts, or other objects that hold attributes (got {type(record).__name__}: "
            f"{record!r:.80}): map the records to cuts with ds.map(fn)"
        )
        raise WrongType(message)
    return item
