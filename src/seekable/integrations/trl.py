"""TRL: its SFTTrainer on seekable datasets and streams, in their own order, with exact resumption."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from seekable.dataset.dataset import Dataset
from seekable.errors import InvalidArgument, WrongType
from seekable.integrations.transformers import TrainerMixin
from seekable.stream.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SFTTrainerMixin"]


class SFTTrainerMixin(TrainerMixin):
    """Lets ``trl.SFTTrainer`` train on seekable datasets and streams of tokens: write it before that class.

    Records are dicts with ``"input_ids"``, and with ``"labels"`` where some tokens have no loss (-100 there).
    TRL would tokenize, cut and pack the whole dataset before the first step; here that is a part of the
    pipeline: ``sk.tokenize``, ``ds.map``, ``stream.pack``. So ``max_length`` cuts nothing, and ``packing`` is
    refused. Checkpoints, ranks and the rest are as of `seekable.integrations.transformers.TrainerMixin`.

    Args:
        args: as of ``trl.SFTTrainer``.
        train_dataset: a Dataset, or a Stream without an end.
        given: the other arguments of ``trl.SFTTrainer``.

    Raises:
        WrongType: ``train_dataset`` is neither a Dataset nor a Stream.
        InvalidArgument: its records have no ``"input_ids"``, or ``packing`` is set.
    """

    def __init__(self, *args: Any, train_dataset: Dataset | Stream, **given: Any) -> None:
        from datasets import Dataset as Columns  # TRL brings it

        first = _first(train_dataset)
        # TRL looks at the columns of a dataset of its own kind, and prepares it: one record is enough.
        super().__init__(*args, train_dataset=Columns.from_list([first]), **given)  # type: ignore[misc]
        if getattr(self.args, "packing", False):
            message = (
                "packing=True packs a dataset before the first step, and this one is read while it trains: "
                "pack in the pipeline, with stream.pack() and dicts of input_ids and labels"
            )
            raise InvalidArgument(message)
        self.train_dataset = train_dataset


def _first(data: Dataset | Stream) -> Mapping[str, Any]:
    """Return the first record of the data, as lists."""
    if not isinstance(data, Dataset | Stream):
        message = (
            f"train_dataset must be a seekable dataset or stream (got {type(data).__name__}): wrap it in "
            f"sk.from_sequence, or use trl.SFTTrainer"
        )
        raise WrongType(message)
    [first] = itertools.islice(iter(data), 1)
    if not isinstance(first, dict) or "input_ids" not in first:
        message = (
            f"records must be dicts with 'input_ids', the tokens (got {first!r:.200}): tokenize in the "
            f"pipeline, with ds.map(fn)"
        )
        raise InvalidArgument(message)
    return {key: getattr(value, "tolist", lambda value=value: value)() for key, value in first.items()}
