"""The items of Megatron-core's ``GPTDataset``: tokens, labels, loss mask and positions of a packed sample."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._arguments import checked_count, checked_flag
from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from seekable.dataset.dataset import Dataset

__all__ = ["ItemOptions", "gpt_item"]

_NO_TOKEN = -1
"""Megatron's pad token where the tokenizer has none that no other token is equal to."""


@dataclass(frozen=True, slots=True)
class ItemOptions:
    """The options of a ``GPTDatasetConfig`` that decide what an item holds, and not which tokens it is of."""

    extra: int
    """1 if a sample has the token after it, ``add_extra_token_to_sequence``; else 0."""

    eod: int | None
    pad: int
    reset_position_ids: bool
    eod_mask_loss: bool

    @classmethod
    def checked(
        cls,
        *,
        add_extra_token: object,
        eod: object,
        pad: object,
        reset_position_ids: object,
        eod_mask_loss: object,
    ) -> ItemOptions:
        """Return the options for arguments of ``gpt_datasets``.

        Raises:
            WrongType, InvalidArgument: an argument breaks a rule.
        """
        made = cls(
            int(checked_flag("add_extra_token", add_extra_token)),
            None if eod is None else checked_count("eod", eod, least=0),
            # Megatron lets no pad token hide the ends of documents.
            _NO_TOKEN if pad is None or pad == eod else checked_count("pad", pad, least=_NO_TOKEN),
            checked_flag("reset_position_ids", reset_position_ids),
            checked_flag("eod_mask_loss", eod_mask_loss),
        )
        if made.eod is None and (made.reset_position_ids or made.eod_mask_loss):
            message = "reset_position_ids and eod_mask_loss need eod=, the token at the end of each document"
            raise InvalidArgument(message)
        return made

    def items(self, samples: Dataset, dataset_id: int | None = None) -> Dataset:
        """Return the items of a dataset of samples.

        Args:
            samples: records with ``tokens``; also with ``segment_ids`` if they may be padded.
            dataset_id: the index of the source in a blend; None without a blend.
        """
        arguments: dict[str, Any] = {
            "extra": self.extra,
            "eod": self.eod,
            "pad": self.pad,
            "reset_position_ids": self.reset_position_ids,
            "eod_mask_loss": self.eod_mask_loss,
            **({} if dataset_id is None else {"dataset_id": dataset_id}),
        }
        function: Callable[..., Any] = partial(gpt_item, **arguments)
        return samples.map(function)


def gpt_item(
    sample: Mapping[str, NDArray[Any]],
    *,
    extra: int,
    eod: int | None,
    pad: int,
    reset_position_ids: bool,
    eod_mask_loss: bool,
    dataset_id: int | None = None,
) -> dict[str, Any]:
    """Return the item that ``GPTDataset`` makes of a sample, in arrays of numpy and without attention mask.

    Args:
        sample: ``tokens``, and ``segment_ids`` with 0 where padded if it may be.
        extra: 1 if the sample has the token after it, which is the last label.
        eod: the token at the end of documents; None if no option needs it.
        pad: the token that is masked: its loss is 0, and the embedding gets token 0 for it.
        reset_position_ids: True for positions that start again after each end of a document.
        eod_mask_loss: True for loss 0 where the input is the end of a document.
        dataset_id: the index of the source in a blend, which the item then has.

    Returns:
        ``tokens``, ``labels`` and ``position_ids``, int64, and ``loss_mask``, float32.

    Example:
        >>> item = gpt_item({"tokens": np.array([5, 6, 0, 7])}, extra=1, eod=0, pad=-1,
        ...                 reset_position_ids=True, eod_mask_loss=True)
        >>> {name: values.tolist() for name, values in item.items()}
        {'tokens': [5, 6, 0], 'labels': [6, 0, 7], 'loss_mask': [1.0, 1.0, 0.0], 'position_ids': [0, 1, 2]}
    """
    text = sample["tokens"].astype(np.int64)
    if "segment_ids" in sample:
        text[sample["segment_ids"] == 0] = pad
    if extra:
        tokens, labels = text[:-1].copy(), text[1:].copy()
    else:
        tokens, labels = text, np.roll(text, -1)
        labels[-1:] = pad
    loss_mask = np.ones(tokens.size, dtype=np.float32)
    positions = np.arange(tokens.size, dtype=np.int64)
    if eod_mask_loss:
        loss_mask[tokens == eod] = 0
    if reset_position_ids:
        starts = np.zeros_like(positions)
        starts[1:] = positions[1:] * (tokens[:-1] == eod)
        positions -= np.maximum.accumulate(starts)
    loss_mask[labels == pad] = 0
    tokens[tokens == pad] = 0
    labels[labels == pad] = 0
    number = {} if dataset_id is None else {"dataset_id": np.int16(dataset_id)}
    return {**number, "tokens": tokens, "labels": labels, "loss_mask": loss_mask, "position_ids": positions}
