"""The datasets of Megatron-core's GPT training, for runs that go on with seekable.

`gpt_datasets` makes the train, valid and test datasets that ``BlendedMegatronDatasetBuilder`` makes of a
blend of ``GPTDataset``, with the same items in the same order, by numpy alone. `from_cache` takes the order
from the index files that a run of Megatron left. Megatron's ``consumed_samples`` is the position where a run
goes on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seekable._arguments import checked_count, checked_flag, checked_seed, explains_keywords
from seekable.dataset.dataset import Dataset
from seekable.dataset.open import open as open_dataset
from seekable.errors import InvalidArgument, WrongType
from seekable.integrations.megatron_cache import CachedOrders, ItemOptions
from seekable.nodes.node import node_of
from seekable.packing.document_lengths import has_documents, row_lengths
from seekable.packing.nodes.blend import MegatronBlend
from seekable.packing.nodes.packed_node import PackNode
from seekable.packing.nodes.sample_form import checked_form
from seekable.packing.order.megatron_order import normalized, split_bounds, wanted_samples
from seekable.packing.packing_options import SampleCut

if TYPE_CHECKING:
    from os import PathLike

    from seekable.nodes.node import Node

__all__ = ["SPLITS", "Blend", "checked_samples", "from_cache", "gpt_datasets", "parsed_blend", "parsed_split"]

SPLITS = ("train", "valid", "test")
"""The names of the splits, in Megatron's order."""

_NUMBER = re.compile(r"[.0-9]+")

_PAIR = 2


@dataclass(frozen=True, slots=True)
class Blend:
    """The sources of a blend, and their weights."""

    sources: tuple[str | Dataset, ...]
    """Prefixes of pairs of files, or datasets of documents."""

    weights: tuple[float, ...] | None
    """The weight of each source; None to take the numbers of their samples."""

    def __post_init__(self) -> None:
        """Check the sources and weights.

        Raises:
            WrongType: a source is neither a prefix nor a dataset.
            InvalidArgument: there is no source, or a weight is not above 0.
        """
        if not self.sources:
            message = "a blend needs at least one prefix (got none)"
            raise InvalidArgument(message)
        for source in self.sources:
            if not isinstance(source, str | Dataset):
                message = f"a blend has prefixes of .bin and .idx files, or datasets (got {source!r})"
                raise WrongType(message)
        if self.weights is not None and len(self.weights) != len(self.sources):
            message = (
                f"a blend has one weight for each prefix (got {len(self.weights)} weights for "
                f"{len(self.sources)} prefixes)"
            )
            raise InvalidArgument(message)
        for weight in self.weights or ():
            if not (weight > 0 and math.isfinite(weight)):
                message = f"the weights of a blend must be above 0 (got {weight!r}): leave the source out"
                raise InvalidArgument(message)


def parsed_blend(blend: Any) -> Blend:
    """Return a blend in one of the forms in which Megatron takes it.

    Args:
        blend: a prefix; a list of prefixes; a flat list of weights and prefixes, as after ``--data-path``; a
            pair of a list of prefixes and a list of weights, or None; or a dict of prefixes and their
            weights. Datasets of documents may stand for prefixes.

    Raises:
        WrongType: it is none of these.
        InvalidArgument: weights are missing, or not above 0.

    Example:
        >>> parsed_blend(["30", "a", "70", "b"])
        Blend(sources=('a', 'b'), weights=(30.0, 70.0))
        >>> parsed_blend((["a", "b"], None)) == parsed_blend(["a", "b"])
        True
    """
    if isinstance(blend, str | Dataset):
        return Blend((blend,), None)
    if isinstance(blend, Mapping):
        return Blend(tuple(blend), tuple(_weight(weight) for weight in blend.values()))
    if not isinstance(blend, Sequence):
        message = f"a blend is a prefix, a list, or a dict of prefixes and weights (got {blend!r})"
        raise WrongType(message)
    if len(blend) == _PAIR and _is_list(blend[0]):
        sources, weights = blend
        return Blend(tuple(sources), None if weights is None else tuple(map(_weight, weights)))
    numbers = [_is_number(value) for value in blend[::2]]
    if len(blend) % 2 or not any(numbers):
        return Blend(tuple(blend), None)
    if not all(numbers):
        message = f"each prefix of a blend has a weight before it, or none has (got {list(blend)!r})"
        raise InvalidArgument(message)
    return Blend(tuple(blend[1::2]), tuple(_weight(value) for value in blend[::2]))


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | Dataset)


def _is_number(value: Any) -> bool:
    if isinstance(value, Dataset):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _weight(value: Any) -> float:
    if not _is_number(value):
        message = f"the weights of a blend are numbers (got {value!r})"
        raise WrongType(message)
    return float(value)


def parsed_split(split: str) -> list[float]:
    """Return the shares of the three splits that a text such as ``"969,30,1"`` names.

    Raises:
        WrongType: it is not a text.
        InvalidArgument: it has no number, more than three, or adds up to 0.

    Example:
        >>> parsed_split("969, 30, 1"), parsed_split("1")
        ([969.0, 30.0, 1.0], [1.0, 0.0, 0.0])
    """
    if not isinstance(split, str):
        message = f"split must be a text such as '969,30,1' (got {split!r})"
        raise WrongType(message)
    try:
        shares = [float(number) for number in _NUMBER.findall(split)]
    except ValueError:
        shares = []
    if not 0 < len(shares) <= len(SPLITS) or not sum(shares):
        message = (
            f"split must have one to three numbers that do not add up to 0, as '969,30,1' (got {split!r})"
        )
        raise InvalidArgument(message)
    return shares + [0.0] * (len(SPLITS) - len(shares))


def checked_samples(samples: object) -> tuple[int | None, ...]:
    """Return how many samples each split has; None for those of one epoch.

    Raises:
        WrongType: they are no list of three integers or None.
        InvalidArgument: there are not three, or one is below 0.
    """
    if isinstance(samples, str) or not isinstance(samples, Sequence):
        message = f"samples must be the numbers of samples of train, valid and test (got {samples!r})"
        raise WrongType(message)
    if len(samples) != len(SPLITS):
        message = f"samples must be three numbers, of train, valid and test (got {len(samples)})"
        raise InvalidArgument(message)
    return tuple(None if count is None else checked_count("samples", count, least=0) for count in samples)


@explains_keywords({"blend_per_split": "the three blends as blend, and split=None"})
def gpt_datasets(  # noqa: PLR0913 - the options of Megatron's configuration that decide items
    blend: Any,
    *,
    split: str | None = "969,30,1",
    sequence_length: int,
    seed: int,
    samples: Sequence[int | None] = (None, None, None),
    add_extra_token: bool = True,
    drop_last_partial_validation: bool = True,
    eod: int | None = None,
    pad: int | None = None,
    reset_position_ids: bool = False,
    eod_mask_loss: bool = False,
    surplus: float = 0.005,
) -> dict[str, Dataset]:
    """Return the datasets of GPT training in Megatron's order.

    Row ``i`` of a dataset is the item ``i`` of Megatron-core 0.16.1's, as a dict of numpy arrays: ``tokens``,
    ``labels``, ``position_ids`` (int64), ``loss_mask`` (float32), and ``dataset_id`` (int16) of a blend.
    Dense attention masks are not made. The index arrays are built in memory, in each process that reads
    samples: 4 bytes for each document of each epoch, and 12 for each sample.

    Args:
        blend: a prefix of ``.bin`` and ``.idx`` files; a list of prefixes; a list of weights and prefixes, as
            after ``--data-path``; a pair of lists of prefixes and of weights; or a dict. Datasets of
            documents may stand for prefixes.
        split: the relative sizes of train, valid and test, which are runs of each source's documents. None
            for documents of their own: ``blend`` is a list of three then, a blend or None for each split.
        sequence_length: the number of tokens of a sample.
        seed: Megatron's ``random_seed``, 0 to 2**32 - 1.
        samples: the numbers of samples of train, valid and test; None for one epoch of the data, which a
            blend with weights cannot have.
        add_extra_token: ``add_extra_token_to_sequence``.
        drop_last_partial_validation: ``drop_last_partial_validation_sequence``.
        eod: the tokenizer's token at the end of documents; the two options that follow need it.
        pad: the tokenizer's pad token, which is masked; None if it has none, or shares it with another token.
        reset_position_ids: as Megatron's option.
        eod_mask_loss: as Megatron's option.
        surplus: ``mid_level_dataset_surplus``.

    Returns:
        The datasets by ``"train"``, ``"valid"`` and ``"test"``. A split without samples is left out.

    Raises:
        InvalidArgument: an argument breaks a rule; or samples are wanted of a split that has no token, for
            which Megatron never returns.
        WrongType: an argument has another type.

    Example:
        >>> import seekable as sk
        >>> docs = sk.from_sequence([{"tokens": list(range(n))} for n in (3, 5, 2, 4, 6)])
        >>> made = gpt_datasets(docs, split="1,0,0", sequence_length=4, seed=1234)
        >>> [item["tokens"].tolist() for item in made["train"]]
        [[2, 0, 1, 2], [4, 5, 0, 1], [3, 4, 0, 1], [0, 1, 2, 3]]
    """
    options = ItemOptions.checked(
        add_extra_token=add_extra_token,
        eod=eod,
        pad=pad,
        reset_position_ids=reset_position_ids,
        eod_mask_loss=eod_mask_loss,
    )
    wanted = checked_samples(samples)
    seed = checked_seed(seed)
    length = checked_count("sequence_length", sequence_length, least=1)
    keep_last = not checked_flag("drop_last_partial_validation", drop_last_partial_validation)
    blends, shares = _blends_of_splits(blend, split)
    builder = _Builder(
        length=length,
        seed=seed,
        options=options,
        surplus=_checked_surplus(surplus),
        keep_last=keep_last,
        shares=shares,
        opened=_opened([one for one in blends if one is not None]),
    )
    made = {
        name: None if one is None else builder.build(name, one, count)
        for name, one, count in zip(SPLITS, blends, wanted, strict=True)
    }
    return {name: dataset for name, dataset in made.items() if dataset is not None}


def from_cache(  # noqa: PLR0913 - the options that decide items, as of gpt_datasets
    folder: str | PathLike[str],
    prefix: str | None = None,
    *,
    split: str = "train",
    moved: Mapping[str, str | Dataset] | None = None,
    add_extra_token: bool = True,
    eod: int | None = None,
    pad: int | None = None,
    reset_position_ids: bool = False,
    eod_mask_loss: bool = False,
) -> Dataset:
    """Return a dataset in the order of the index files that a run of Megatron left in a folder.

    The arrays are those of Megatron's ``path_to_cache`` (``--data-cache-path``), or of the folder
    ``PREFIX/cache/GPTDataset_indices``. They are compared with the lengths of the documents; Megatron itself
    does not see that data were rewritten. Nothing is built, and nothing of the files is executed.

    Args:
        folder: the folder of ``{hash}-GPTDataset-{split}-document_index.npy`` and the files beside it.
        prefix: the prefix of the data of one ``GPTDataset``, or the hash in the names of the files of it or
            of a blend. None for the only blend of the split, or for its only dataset if there is no blend.
        split: ``"train"``, ``"valid"`` or ``"test"``.
        moved: the present prefix, or a dataset of the documents, for each prefix that the files name and that
            is elsewhere now.
        add_extra_token: as of the run; the files do not say it.
        eod: as of `gpt_datasets`.
        pad: as of `gpt_datasets`.
        reset_position_ids: as of `gpt_datasets`.
        eod_mask_loss: as of `gpt_datasets`.

    Raises:
        DataNotFound: there is no such order in the folder.
        InvalidArgument: there are several; the message lists them.
        CorruptTokens: a file is torn or damaged.
        IndexStale: the documents are not those that the files were made for.
    """
    options = ItemOptions.checked(
        add_extra_token=add_extra_token,
        eod=eod,
        pad=pad,
        reset_position_ids=reset_position_ids,
        eod_mask_loss=eod_mask_loss,
    )
    if split not in SPLITS:
        message = f"split must be one of {', '.join(map(repr, SPLITS))} (got {split!r})"
        raise InvalidArgument(message)
    return CachedOrders(folder, split).dataset(prefix, moved or {}, options)


def _checked_surplus(surplus: object) -> float:
    if isinstance(surplus, bool) or not isinstance(surplus, (int, float)):
        message = f"surplus must be a number, such as 0.005 (got {surplus!r})"
        raise WrongType(message)
    if not 0 <= surplus < math.inf:
        message = f"surplus must be at least 0, and finite (got {surplus!r})"
        raise InvalidArgument(message)
    return surplus


def _blends_of_splits(blend: Any, split: str | None) -> tuple[list[Blend | None], list[float] | None]:
    """Return the blend and the size for each split; no sizes if each has documents of its own."""
    if split is not None:
        return [parsed_blend(blend)] * len(SPLITS), parsed_split(split)
    if isinstance(blend, str) or not isinstance(blend, Sequence):
        message = f"split=None takes a list of three blends, of train, valid and test (got {blend!r})"
        raise WrongType(message)
    if len(blend) != len(SPLITS):
        message = f"split=None takes three blends, of train, valid and test (got {len(blend)})"
        raise InvalidArgument(message)
    return [None if one is None else parsed_blend(one) for one in blend], None


def _opened(blends: Sequence[Blend]) -> dict[str | int, Dataset]:
    """Return the dataset of each prefix, opened once, and each given dataset by its ``id``."""
    sources = [source for blend in blends for source in blend.sources]
    found: dict[str | int, Dataset] = {
        id(source): source for source in sources if isinstance(source, Dataset)
    }
    for prefix in dict.fromkeys(source for source in sources if isinstance(source, str)):
        found[prefix] = open_dataset(f"megatron:{prefix.strip()}")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Builder:
    """Makes the dataset of each split, as ``BlendedMegatronDatasetBuilder`` does."""

    length: int
    seed: int
    options: ItemOptions
    surplus: float
    keep_last: bool
    shares: list[float] | None
    """The relative sizes of the splits; None if each split has documents of its own."""
    opened: Mapping[str | int, Dataset]
    """The documents of each source."""

    def build(self, split: str, blend: Blend, samples: int | None) -> Dataset | None:
        """Return the items of a blend in a split; None if there are none.

        Raises:
            InvalidArgument: the blend has weights, and ``samples`` is None; or samples are wanted of a source
                that has no document in the split.
        """
        if blend.weights is not None and samples is None:
            message = f"a blend with weights needs the number of its samples (got None for {split!r})"
            raise InvalidArgument(message)
        if samples == 0 or (self.shares is not None and not self.shares[SPLITS.index(split)]):
            return None
        if len(blend.sources) == 1 and (blend.weights is None or self.shares is None):
            return self._items(split, blend.sources[0], samples, None)
        if blend.weights is None:
            parts = self._parts(split, blend, [None] * len(blend.sources))
            sizes = [len(part) for part in parts]
            if samples is None:
                return Dataset(MegatronBlend(tuple(node_of(part) for part in parts), None, sum(sizes)))
            return _blended(parts, sizes, min(samples, sum(sizes)))
        assert samples is not None
        shares = normalized(blend.weights)
        built = [wanted_samples(share, samples, self.surplus) for share in shares]
        size = sum(wanted_samples(share, samples) for share in shares)
        return _blended(self._parts(split, blend, built), shares, size)

    def _parts(self, split: str, blend: Blend, samples: Sequence[int | None]) -> list[Dataset]:
        """Return the items of each source of a blend.

        Raises:
            InvalidArgument: a source has no sample.
        """
        made = []
        for number, (source, count) in enumerate(zip(blend.sources, samples, strict=True)):
            items = self._items(split, source, count, number)
            if items is None:
                message = f"{split}: source {number} of the blend, {source!r}, has no sample: leave it out"
                raise InvalidArgument(message)
            made.append(items)
        return made

    def _items(
        self, split: str, source: str | Dataset, samples: int | None, dataset_id: int | None
    ) -> Dataset | None:
        """Return the items of a source in a split; None if it has no sample there.

        Raises:
            InvalidArgument: samples are wanted, and there is no document.
        """
        documents = self.opened[source if isinstance(source, str) else id(source)]
        bounds = [(0, len(documents))] * len(SPLITS)
        if self.shares is not None:
            bounds = split_bounds(self.shares, len(documents))
        start, stop = bounds[SPLITS.index(split)]
        if start == stop:
            if samples is None:
                return None
            message = (
                f"the split {split!r} of {source!r} has none of its {len(documents):,} documents, and "
                f"{samples:,} samples are wanted of it: change split=, or want 0 samples"
            )
            raise InvalidArgument(message)
        part = documents if stop - start == len(documents) else documents[start:stop]
        packed = self._packed(node_of(part), samples, keep_last=self.keep_last and split == "valid")
        return self.options.items(Dataset(packed), dataset_id) if packed.size else None

    def _packed(self, documents: Node, samples: int | None, *, keep_last: bool) -> PackNode:
        columns = ("tokens", "segment_ids") if keep_last else ("tokens",)
        next_token = bool(self.options.extra)
        form = checked_form(
            "gpt_datasets()", default=columns, key="tokens", align=(), columns=None, next_token=next_token
        )
        cut = SampleCut(
            "concat",
            self.length,
            form.extra,
            order="megatron",
            seed=self.seed,
            samples=samples,
            keep_last=keep_last,
        )
        is_indexed = has_documents(documents)
        lengths = None if is_indexed else row_lengths(documents, "tokens", call="gpt_datasets()")
        return PackNode(documents, cut, form, lengths)


def _blended(parts: Sequence[Dataset], weights: Sequence[float], size: int) -> Dataset:
    return Dataset(MegatronBlend(tuple(node_of(part) for part in parts), tuple(normalized(weights)), size))
