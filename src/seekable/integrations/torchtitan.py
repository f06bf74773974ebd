"""torchtitan: a dataloader for its trainer, whose checkpoints go on on any number of data-parallel ranks."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from seekable.dataset.open import open as open_dataset
from seekable.errors import MissingDependency
from seekable.loader.loader import Loader

try:
    import torch
except ImportError as error:
    message = "seekable.integrations.torchtitan needs PyTorch: pip install 'seekable[torch]' torchtitan"
    raise MissingDependency(message) from error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seekable.dataset.dataset import Dataset
    from seekable.stream.stream import Stream

__all__ = ["DataLoaderMixin", "text_stream"]


class Config(Protocol):
    """The fields that a configuration of torchtitan's dataloader must have besides its own."""

    def pipeline(self, tokenizer: Any, seq_len: int) -> Dataset | Stream:
        """Return the data of a run: dicts of arrays, ``"input"``, ``"labels"`` and what else a model takes.

        Args:
            tokenizer: the tokenizer of the training.
            seq_len: the number of tokens of a sequence.
        """
        ...


class DataLoaderMixin:
    """Makes a dataloader of torchtitan of a seekable dataset or stream: write it before ``BaseDataLoader``.

    The configuration has a method ``pipeline(tokenizer, seq_len)``, which returns the data, such as
    `text_stream` does. A checkpoint has one state for all ranks. It goes on on any number of data-parallel
    ranks, if ``local_batch_size`` changes so that a step keeps its number of sequences.

    Args:
        config: what the run says of its data.
        dp_world_size: the number of data-parallel ranks.
        dp_rank: which of them this one is.
        tokenizer: the tokenizer of the training.
        seq_len: the number of tokens of a sequence.
        local_batch_size: the number of sequences in a batch of this rank.
        snapshot_every_n_steps: not used; each state is exact.

    Raises:
        InvalidArgument: the ranks do not divide the lanes of a stream.
    """

    def __init__(
        self,
        config: Config,
        *,
        dp_world_size: int,
        dp_rank: int,
        tokenizer: Any,
        seq_len: int,
        local_batch_size: int,
        snapshot_every_n_steps: int | None = None,
    ) -> None:
        self.loader = Loader(
            config.pipeline(tokenizer, seq_len),
            global_batch_size=local_batch_size * dp_world_size,
            rank=dp_rank,
            world_size=dp_world_size,
            collate=_tensors,
            end="drop",
        )
        self._saved = self.loader.stateful()

    def __iter__(self) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
        """Begin at the first batch, or where a checkpoint was loaded; all ranks call it.

        Raises:
            NotResumable: no state of all ranks could be taken.
        """
        return iter(self._saved)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all ranks after the batches delivered so far; all ranks call it."""
        return self._saved.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where a checkpoint was taken, by any number of ranks.

        Raises:
            StateMismatch: the checkpoint is of another pipeline, or of other data.
        """
        self._saved.load_state_dict(state_dict)

    def close(self) -> None:
        """End the threads and processes that make batches."""
        self.loader.close()


def text_stream(
    source: Any, tokenizer: Any, seq_len: int, *, key: str = "text", seed: int = 0, lanes: int = 960
) -> Stream:
    """Return a stream without end of tokenized texts, packed into sequences of one length.

    As in torchtitan, a document has its tokens but the last as input, and those after the first as labels;
    so no label is of the next document. Positions begin at 0 in each document.

    Args:
        source: what ``sk.open`` opens; the records are dicts.
        tokenizer: a tokenizer of torchtitan. Its class and the size of its vocabulary are part of the
            fingerprint, its files are not.
        seq_len: the number of tokens of a sequence.
        key: the field of a record that has the text.
        seed: the seed of the order of the documents.
        lanes: the lanes of the stream.

    Returns:
        A stream of dicts of int64 arrays of shape ``(seq_len,)``: ``"input"``, ``"labels"``, ``"positions"``.
    """
    version = f"{type(tokenizer).__qualname__} of {tokenizer.get_vocab_size()}, {key}"
    encode = functools.partial(_document, tokenizer, key)
    documents = open_dataset(source).shuffle(seed=seed).map(encode, version=version)
    packed = documents.stream(lanes=lanes).filter(_has_labels).pack(seq_len, key="input", align=["labels"])
    return packed.map(_sequence)


def _document(tokenizer: Any, key: str, record: Mapping[str, Any]) -> dict[str, Any]:
    tokens = np.asarray(tokenizer.encode(record[key], add_bos=True, add_eos=True), dtype=np.int64)
    return {"input": tokens[:-1], "labels": tokens[1:]}


def _has_labels(document: Mapping[str, Any]) -> bool:
    return len(document["labels"]) > 0


def _sequence(packed: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "input": packed["tokens"],
        "labels": packed["labels"],
        "positions": packed["positions"].astype(np.int64),
    }


def _tensors(sequences: list[dict[str, Any]]) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Return a batch as torchtitan takes it: what the model gets, and the labels."""
    stacked = {key: torch.from_numpy(np.stack([each[key] for each in sequences])) for key in sequences[0]}
    labels = stacked.pop("labels")
    return stacked, labels
