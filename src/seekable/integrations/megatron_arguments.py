"""Blends, splits and numbers of samples as the arguments of Megatron write them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seekable._arguments import checked_count
from seekable.dataset.dataset import Dataset
from seekable.errors import InvalidArgument, WrongType

__all__ = ["SPLITS", "Blend", "checked_samples", "parsed_blend", "parsed_split"]

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
        WrongType: it is no text.
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
    """Return the number of samples of each split; None for those of one epoch.

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
