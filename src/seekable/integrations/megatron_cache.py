"""The index files that Megatron-core leaves in its cache, and the items of its ``GPTDataset``.

The files are found by their descriptions, checked, and used. An item has the tokens, labels, loss mask and
positions of a packed sample.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from seekable._arguments import checked_count, checked_flag
from seekable.dataset.combine import concat
from seekable.dataset.dataset import Dataset
from seekable.dataset.open import open as open_dataset
from seekable.errors import CorruptTokens, DataNotFound, IndexStale, InvalidArgument, WrongType
from seekable.nodes.node import node_of
from seekable.packing.nodes.packed_node import WindowsNode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from numpy.typing import NDArray

    from seekable._typing import Int64s

__all__ = ["CachedOrders", "ItemOptions", "gpt_item"]


_BLEND, _GPT = "BlendedDataset", "GPTDataset"

_PAIR = 2


@final
class CachedOrders:
    """The orders of one split whose files lie in a folder."""

    def __init__(self, folder: str | PathLike[str], split: str) -> None:
        """Find the descriptions of a split.

        Raises:
            DataNotFound: there is no such folder.
            CorruptTokens: a description is not JSON.
        """
        self._folder = Path(folder)
        self._split = split
        if not self._folder.is_dir():
            message = f"{str(self._folder)!r} is no folder: pass the one that path_to_cache named"
            raise DataNotFound(message)
        self._blends = self._described(_BLEND)
        self._datasets = self._described(_GPT)

    def dataset(
        self, prefix: str | None, moved: Mapping[str, str | Dataset], options: ItemOptions
    ) -> Dataset:
        """Return the items of the order that a prefix or a hash names.

        Args:
            prefix: a prefix, a hash, or None for the only order.
            moved: the present place of the data of prefixes that are elsewhere now.
            options: the options of items.

        Raises:
            DataNotFound: there is no such order.
            InvalidArgument: there are several.
            CorruptTokens: a file is torn or damaged.
            IndexStale: the documents are not those that the files were made for.
        """
        name = self._chosen(prefix)
        if name in self._datasets:
            return options.items(self._samples(name, moved, options))
        parts = []
        for number, identifiers in enumerate(self._blends[name]["datasets"]):
            text = json.dumps(identifiers, indent=4)
            part = hashlib.md5(text.encode("utf-8"), usedforsecurity=False).hexdigest()
            if part not in self._datasets:
                message = (
                    f"{str(self._folder)!r} has no files of {part}-{_GPT}-{self._split}, part {number} of "
                    f"the blend {name}: it is of {identifiers.get('dataset_path')!r}"
                )
                raise DataNotFound(message)
            parts.append(options.items(self._samples(part, moved, options), number))
        return self._blended(name, parts)

    def _described(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the description of each order of a kind, by its hash."""
        found = {}
        for path in sorted(self._folder.glob(f"*-{kind}-{self._split}-description.txt")):
            try:
                described = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise _corrupt(path, "a description in JSON", str(error)) from error
            found[path.name.split("-", 1)[0]] = described
        return found

    def _chosen(self, prefix: str | None) -> str:
        if prefix in self._blends or prefix in self._datasets:
            assert prefix is not None
            return prefix
        if prefix is None:
            names = list(self._blends) or list(self._datasets)
        else:
            names = [name for name, facts in self._datasets.items() if facts.get("dataset_path") == prefix]
        if len(names) == 1:
            return names[0]
        listed = "; ".join(f"{name}: {self._in_words(name)}" for name in [*self._blends, *self._datasets])
        if names:
            message = (
                f"{str(self._folder)!r} has {len(names)} orders of the split {self._split!r} for {prefix!r}: "
                f"pass one of these hashes as prefix: {listed}"
            )
            raise InvalidArgument(message)
        wanted = "" if prefix is None else f" for {prefix!r}"
        there = f": it has {listed}" if listed else f" ({{hash}}-{_GPT}-{self._split}-description.txt)"
        message = f"{str(self._folder)!r} has no order of the split {self._split!r}{wanted}{there}"
        raise DataNotFound(message)

    def _in_words(self, name: str) -> str:
        if name in self._blends:
            facts = self._blends[name]
            return f"a blend of {len(facts['datasets'])}, size {facts['size']}"
        facts = self._datasets[name]
        return f"{facts['dataset_path']!r}, length {facts['sequence_length']}, samples {facts['num_samples']}"

    def _array(self, name: str, kind: str, which: str, dimensions: int) -> NDArray[np.integer[Any]]:
        """Return an array of the cache, memory-mapped.

        Raises:
            DataNotFound: the file is missing.
            CorruptTokens: it is torn, or no array of integers.
        """
        path = self._folder / f"{name}-{kind}-{self._split}-{which}.npy"
        if not path.is_file():
            message = f"{str(path)!r} is missing beside the description of {name}: the build was killed"
            raise DataNotFound(message)
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise _corrupt(path, "an array of numpy, of integers", str(error)) from error
        if array.dtype.kind not in "iu" or array.ndim != dimensions:
            found = f"{array.dtype} of shape {array.shape}"
            raise _corrupt(path, f"integers of {dimensions} dimensions", found)
        return np.asarray(array)

    def _samples(self, name: str, moved: Mapping[str, str | Dataset], options: ItemOptions) -> Dataset:
        """Return the samples of one ``GPTDataset``, as records with ``tokens``."""
        facts = self._datasets[name]
        prefix, length = facts["dataset_path"], facts["sequence_length"]
        source = moved.get(prefix, prefix)
        if not isinstance(source, str | Dataset):
            message = f"moved must have prefixes or datasets (got {source!r} for {prefix!r})"
            raise WrongType(message)
        documents = open_dataset(f"megatron:{source}") if isinstance(source, str) else source
        places = self._array(name, _GPT, "document_index", 1)
        cuts = self._array(name, _GPT, "sample_index", 2)
        shuffle = self._array(name, _GPT, "shuffle_index", 1)
        path = str(self._folder / f"{name}-{_GPT}-{self._split}-sample_index.npy")
        if places.max(initial=-1) >= len(documents) or places.min(initial=0) < 0:
            raise _stale(path, prefix, f"it has documents beyond the last of {len(documents):,}")
        whole = documents.select(places.astype(np.int64))
        samples = whole.windows(length, next_token=bool(options.extra), columns=("tokens",))
        node = node_of(samples)
        assert isinstance(node, WindowsNode)
        _check_cuts(cuts, node.documents.offsets, length, path, prefix)
        if len(cuts) - 1 != len(samples) or len(shuffle) != len(samples):
            message = (
                f"{path!r} has {len(cuts) - 1:,} samples, and {prefix!r} with add_extra_token="
                f"{bool(options.extra)} has {len(samples):,}: pass add_extra_token= as of the run. Partial "
                f"samples (drop_last_partial_validation_sequence=False) are made by gpt_datasets() alone"
            )
            raise InvalidArgument(message)
        if (np.bincount(shuffle, minlength=len(samples)) != 1).any():
            raise _stale(path, prefix, "its shuffle index has a row twice")
        return samples.select(shuffle.astype(np.int64))

    def _blended(self, name: str, parts: list[Dataset]) -> Dataset:
        which = self._array(name, _BLEND, "dataset_index", 1)
        rows = self._array(name, _BLEND, "dataset_sample_index", 1)
        path = str(self._folder / f"{name}-{_BLEND}-{self._split}-dataset_sample_index.npy")
        sizes = np.array([len(part) for part in parts], dtype=np.int64)
        fits = len(which) == len(rows) and which.min(initial=0) >= 0 and which.max(initial=0) < len(parts)
        fits = bool(fits and rows.min(initial=0) >= 0 and (rows < sizes[which]).all())
        if not fits:
            raise _stale(path, name, "it has samples beyond the last of a source")
        starts = np.cumsum(sizes) - sizes
        return concat(parts).select(starts[which] + rows)


def _check_cuts(cuts: NDArray[np.integer[Any]], offsets: Int64s, length: int, path: str, prefix: str) -> None:
    """Check that each sample of a sample index begins at its place on the axis of tokens.

    Raises:
        IndexStale: one does not.
    """
    if cuts.shape[1] != _PAIR or cuts[:, 0].min() < 0 or cuts[:, 0].max() >= len(offsets) - 1:
        raise _stale(path, prefix, "it has places beyond the last document")
    # The last entry is the end, which in a partial sample comes earlier.
    begins = (offsets[cuts[:, 0]] + cuts[:, 1])[:-1]
    wrong = np.flatnonzero(begins != np.arange(len(begins)) * length)
    if wrong.size:
        sample = int(wrong[0])
        where = f"sample {sample:,} begins at token {begins[sample]:,}, expected {sample * length:,}"
        raise _stale(path, prefix, where)


def _stale(path: str, prefix: str, problem: str) -> IndexStale:
    message = (
        f"{path!r} does not fit {prefix!r}: {problem}. The data were changed after Megatron cached the "
        f"index, or the files are of another run: delete them, and take gpt_datasets() for the data as it is"
    )
    return IndexStale(message)


def _corrupt(path: Path, expected: str, found: str) -> CorruptTokens:
    cause = ValueError(f"expected {expected}, found {found}; delete it, and build the cache again")
    with path.open("rb") as file:
        preview = file.read(32)
    return CorruptTokens(str(path), 0, offset=0, length=path.stat().st_size, preview=preview, cause=cause)


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
