"""Several datasets, or several streams, made one."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from seekable._arguments import checked_count, checked_seed
from seekable.errors import InvalidArgument, WrongType
from seekable.nodes import concat as datasets_concat
from seekable.nodes import mix as datasets_mix
from seekable.nodes import zip as datasets_zip
from seekable.nodes.weights import checked_schedule, checked_weights, is_schedule
from seekable.stream.chain import Chain
from seekable.stream.mix import MixBounded, MixItems
from seekable.stream.stream import Stream
from seekable.stream.zip import ZipItems

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seekable.dataset.base import Dataset
    from seekable.nodes.weights import Schedule, Weights

__all__ = ["concat", "mix", "zip"]


_ITEMS_PER_TURN = 256
"""Items that each open part of a mixture gives before another part takes its place."""


@overload
def mix(
    parts: Mapping[str, Dataset] | Iterable[Dataset],
    *,
    weights: Weights | Schedule | None = None,
    seed: int,
    stop: Literal["first", "all", "never"] | None = None,
) -> Dataset: ...
@overload
def mix(
    parts: Mapping[str, Stream] | Iterable[Stream],
    *,
    weights: Weights | Schedule | None = None,
    seed: int,
    stop: Literal["first", "all", "never"] | None = None,
    open: int | None = None,
) -> Stream: ...
def mix(
    parts: Mapping[str, Dataset] | Mapping[str, Stream] | Iterable[Dataset] | Iterable[Stream],
    *,
    weights: Weights | Schedule | None = None,
    seed: int,
    stop: Literal["first", "all", "never"] | None = None,
    open: int | None = None,
) -> Dataset | Stream:
    """Return some datasets, or some streams, mixed in given proportions.

    After any number of records each source has given its share of them to within 2, at the ends of blocks of
    64, and within a block more; of streams this holds in each lane. Each source comes in its own order. A
    dataset runs on into its own next epochs. A stream that has ended is drawn no more: from that draw on the
    others share what was its.

    Args:
        parts: a dict of named datasets, or a list of them; or of streams, of equally many lanes.
        weights: for each part a number of at least 0, by name or in the same order; for datasets proportional
            to lengths if left out (an epoch then ends with the first source that is through, a draw or two
            before the others). A part of weight 0 is never drawn. Or a schedule, ``[(0, {...}), (10_000,
            {...})]``: from which position of the mixture, or of streams from which draw of each lane, on
            which weights hold; of datasets it has no end.
        seed: ``0 <= seed < 2**64``; it decides the order within blocks.
        stop: an epoch ends when the ``"first"`` source has given each of its records once (the default), or
            when ``"all"`` have; ``"never"`` makes an endless dataset. A mixture of streams ends with the
            ``"first"`` that ends, or when ``"all"`` have.
        open: of streams: how many are read from at a time, for thousands of them; each gives 256 items before
            another takes its place, in the order of the mixture, so that the shares hold over many of these.

    Raises:
        InvalidArgument: weights that break a rule, or an empty dataset of positive weight.
        EndlessDataset: a dataset has no length and ``stop`` needs one.
        WrongType: something else than datasets alone, or streams alone.

    Example:
        >>> import seekable as sk
        >>> web, code = sk.from_sequence(["w"] * 700), sk.from_sequence(["c"] * 900)
        >>> ds = sk.mix({"web": web, "code": code}, weights={"web": 0.7, "code": 0.3}, seed=0)
        >>> len(ds), list(ds).count("c")
        (1000, 300)
        >>> list(sk.mix([web.stream(), code.stream()], weights=[7, 3], seed=0).take(640)).count("c")
        192
    """
    given: list[Any] = list(parts.values() if isinstance(parts, Mapping) else parts)
    if not _are_streams("mix()", given):
        named = builtins.zip(parts, given, strict=True) if isinstance(parts, Mapping) else None
        if open is not None:
            message = "open= is for streams: datasets are read at positions, and none of them stays open"
            raise InvalidArgument(message)
        datasets = cast("Mapping[str, Dataset] | list[Dataset]", dict(named) if named else given)
        return datasets_mix.mix(datasets, weights=weights, seed=seed, stop=stop)
    names = tuple(parts) if isinstance(parts, Mapping) else None
    if stop not in (None, "first", "all"):
        message = f"a mixture of streams must stop with the 'first' or with 'all' (got {stop!r})"
        raise InvalidArgument(message)
    if weights is None:
        message = "a mixture of streams needs weights=: they have no lengths to go by"
        raise InvalidArgument(message)
    schedule = (
        checked_schedule(weights, names, len(given))
        if is_schedule(weights)
        else ((0, checked_weights(weights, names, len(given))),)
    )
    stages = tuple(stream.stage for stream in given)
    mixture = MixItems(stages, names, schedule, checked_seed(seed), "all" if stop == "all" else "first")
    if open is None:
        return Stream(mixture)
    if len(schedule) > 1:
        message = (
            "open= is for one set of weights: those of a schedule change at items, and places at 256 of them"
        )
        raise InvalidArgument(message)
    return Stream(MixBounded(mixture, checked_count("open", open, least=1), _ITEMS_PER_TURN))


@overload
def concat(parts: Iterable[Dataset]) -> Dataset: ...
@overload
def concat(parts: Iterable[Stream]) -> Stream: ...
def concat(parts: Iterable[Dataset] | Iterable[Stream]) -> Dataset | Stream:
    """Return the records of some datasets, one dataset after another; or of streams, in each lane.

    An epoch of a result of datasets is an epoch of each.

    Args:
        parts: at least one dataset, none of them endless; or streams of equally many lanes.

    Raises:
        InvalidArgument: there are none, or streams have different numbers of lanes.
        EndlessDataset: a dataset has no end.
        WrongType: something else than datasets alone, or streams alone.

    Example:
        >>> import seekable as sk
        >>> list(sk.concat([sk.from_sequence("ab"), sk.from_sequence("cd")]))
        ['a', 'b', 'c', 'd']
    """
    given: list[Any] = list(parts)
    if _are_streams("concat()", given):
        return Stream(Chain(tuple(stream.stage for stream in given)))
    return datasets_concat.concat(given)


@overload
def zip(parts: Iterable[Dataset]) -> Dataset: ...
@overload
def zip(parts: Iterable[Stream]) -> Stream: ...
def zip(parts: Iterable[Dataset] | Iterable[Stream]) -> Dataset | Stream:
    """Return tuples of the records at the same positions of some datasets, or of the next items of streams.

    Args:
        parts: at least one dataset, all of one length; or streams of equally many lanes, of which a lane ends
            with the first that ends.

    Raises:
        InvalidArgument: there are none, or their lengths, or lanes, differ.
        WrongType: something else than datasets alone, or streams alone.

    Example:
        >>> import seekable as sk
        >>> list(sk.zip([sk.from_sequence("ab"), sk.from_sequence([1, 2])]))
        [('a', 1), ('b', 2)]
    """
    given: list[Any] = list(parts)
    if _are_streams("zip()", given):
        return Stream(ZipItems(tuple(stream.stage for stream in given)))
    return datasets_zip.zip(given)


def _are_streams(wanted_by: str, parts: Sequence[Any]) -> bool:
    """Tell streams from what is not.

    Raises:
        WrongType: some are, and some are not.
    """
    streams = [isinstance(part, Stream) for part in parts]
    if any(streams) and not all(streams):
        other = parts[streams.index(False)]
        message = (
            f"{wanted_by} takes Datasets alone or Streams alone (got a Stream and a {type(other).__name__}): "
            f"make streams of datasets with .stream()"
        )
        raise WrongType(message)
    return any(streams)
