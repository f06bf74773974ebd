"""Lhotse: datasets and streams of cuts under ``CutSet`` and Lhotse's samplers, restored in constant time."""

from __future__ import annotations

from typing import Any

from seekable._arguments import checked_count
from seekable.dataset.dataset import Dataset
from seekable.errors import InvalidArgument, MissingDependency, WrongType
from seekable.formats.shar.lhotse_cuts import cut_from_record, cut_to_record
from seekable.stream.stream import Stream

try:
    from lhotse import CutSet

    from seekable.integrations.lhotse_nodes import DatasetNode, StreamNode
except ImportError as error:
    message = "seekable.integrations.lhotse needs Lhotse 2: pip install 'seekable[lhotse]'"
    raise MissingDependency(message) from error

__all__ = ["cut_from_record", "cut_set", "cut_to_record"]


def cut_set(
    source: Dataset | Stream, *, epochs: int | None = 1, shard: tuple[int, int] | None = None
) -> CutSet:
    """Return a lazy ``CutSet`` of the cuts of a dataset or a stream, in its order.

    Lhotse's nodes and samplers take it as they take an indexed manifest: ``filter``, ``map``, ``mux``,
    ``mix``, ``repeat`` and ``shuffle`` of the set, dynamic samplers, ``IterableDatasetWrapper`` under a
    ``StatefulDataLoader``. They restore a state without replay: an item that waits in a buffer is read again
    by its token, and reading goes on at a position.

    Records are cuts, or their dicts (``cut_from_record`` says which). The token of an item is its position on
    the dataset's endless axis, ``epoch * len(ds) + row``, so an item of an earlier epoch is rebuilt from that
    epoch; of a stream it is the stream's token. ``cuts.data[token]`` is the cut.

    Each finished pass over a dataset is followed by the next epoch; a pass that was left begins anew.
    ``cuts.data.set_epoch(epoch)`` sets the epoch of the next pass; an ``IterableDatasetWrapper`` calls it.
    A pass over a stream is the whole stream.

    Workers of a DataLoader share the positions of a pass (of a stream, its lanes): worker ``w`` of ``n`` has
    every ``n``-th one. With Lhotse's ``worker_init_fn`` ranks share them too. A state is bound to its share.

    Args:
        source: of cuts, or of dicts of cuts.
        epochs: the number of epochs of a pass over a dataset; None for a pass without end.
        shard: ``(i, n)``: this process has every ``n``-th position, from the ``i``-th on, whatever the
            workers and ranks are; ``(0, 1)`` is all of them.

    Raises:
        WrongType: ``source`` is neither a Dataset nor a Stream.
        InvalidArgument: ``epochs`` is below 1, or of a stream; or ``shard`` is not a part.

    Example:
        >>> import seekable as sk
        >>> from lhotse.testing.dummies import dummy_cut
        >>> ds = sk.from_sequence([dummy_cut(number) for number in range(5)])
        >>> cuts = cut_set(ds.shuffle(seed=0)).filter(lambda cut: cut.id != "dummy-mono-cut-0003")
        >>> run = iter(cuts)
        >>> first, state = next(run), cuts.state_dict()
        >>> again = cut_set(ds.shuffle(seed=0)).filter(lambda cut: cut.id != "dummy-mono-cut-0003")
        >>> again.load_state_dict(state)
        >>> [cut.id for cut in again] == [cut.id for cut in run]
        True
    """
    shard = None if shard is None else _checked_shard(shard)
    if isinstance(source, Stream):
        if epochs != 1:
            message = f"a stream says itself how many epochs it has: ds.stream(epochs={epochs})"
            raise InvalidArgument(message)
        return CutSet(StreamNode(source, shard))
    if not isinstance(source, Dataset):
        message = f"cut_set() takes a Dataset or a Stream of cuts (got {type(source).__name__})"
        raise WrongType(message)
    if epochs is not None:
        checked_count("epochs", epochs, least=1)
    return CutSet(DatasetNode(source, epochs, shard))


def _checked_shard(shard: Any) -> tuple[int, int]:
    match shard:
        case (int(number), int(count)) if 0 <= number < count:
            return number, count
    message = f"shard is (i, n) with 0 <= i < n, this process's number and how many there are (got {shard!r})"
    raise InvalidArgument(message)
