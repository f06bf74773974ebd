"""The functions that combine several datasets, or several streams: mix, concat, zip and join."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from seekable._arguments import checked_count, checked_flag, checked_seed, explains_keywords
from seekable._lazy import lazy
from seekable._other_words import MIX
from seekable.dataset.dataset import Dataset
from seekable.errors import InvalidArgument, WrongType
from seekable.nodes.concat import Concat
from seekable.nodes.mix import mixed, schedule_of
from seekable.nodes.node import node_of
from seekable.nodes.zip import Zip

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor

    from seekable.dataset import union
    from seekable.nodes import filter as filter_node
    from seekable.nodes import join as join_node
    from seekable.nodes.join import Duplicates, How
    from seekable.nodes.mix import Schedule, Weights
    from seekable.nodes.node import Node
    from seekable.parallel.progress import ProgressChoice
    from seekable.stream import mix as stream_mix
    from seekable.stream import stream as stream_face
    from seekable.stream import zip as stream_zip
    from seekable.stream.stage import Stage
    from seekable.stream.stream import Stream
else:
    union = lazy("seekable.dataset.union")
    filter_node = lazy("seekable.nodes.filter")
    join_node = lazy("seekable.nodes.join")
    stream_mix = lazy("seekable.stream.mix")
    stream_face = lazy("seekable.stream.stream")
    stream_zip = lazy("seekable.stream.zip")

__all__ = ["concat", "join", "mix", "zip"]

_ITEMS_PER_TURN = 256
"""The number of items that a mixture takes from an open part before it opens another part instead."""


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
@explains_keywords(MIX)
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
    names = tuple(parts) if isinstance(parts, Mapping) else None
    given = _listed("mix()", parts.values() if isinstance(parts, Mapping) else parts)
    if _are_streams("mix()", given):
        return _mixed_streams(
            tuple(stream.stage for stream in given), names, weights=weights, seed=seed, stop=stop, open=open
        )
    if open is not None:
        message = "open= is for streams: datasets are read at positions, and none of them stays open"
        raise InvalidArgument(message)
    return Dataset(mixed(_nodes("mix()", given), names, weights=weights, seed=seed, stop=stop))


def _mixed_streams(
    parts: tuple[Stage, ...],
    names: tuple[str, ...] | None,
    *,
    weights: Weights | Schedule | None,
    seed: int,
    stop: Literal["first", "all", "never"] | None,
    open: int | None,
) -> Stream:
    if stop not in (None, "first", "all"):
        message = f"a mixture of streams must stop with the 'first' or with 'all' (got {stop!r})"
        raise InvalidArgument(message)
    if weights is None:
        message = "a mixture of streams needs weights=: they have no lengths to go by"
        raise InvalidArgument(message)
    schedule = schedule_of(weights, names, len(parts))
    mixture = stream_mix.MixItems(
        parts, names, schedule, checked_seed(seed), "all" if stop == "all" else "first"
    )
    if open is None:
        return stream_face.Stream(mixture)
    if len(schedule) > 1:
        message = (
            "open= is for one set of weights: those of a schedule change at items, and places at 256 of them"
        )
        raise InvalidArgument(message)
    open = checked_count("open", open, least=1)
    return stream_face.Stream(stream_mix.MixBounded(mixture, open, _ITEMS_PER_TURN))


@overload
def concat(
    parts: Iterable[Dataset], *, columns: Literal["union"] | None = None, distinct: bool = False
) -> Dataset: ...
@overload
def concat(parts: Iterable[Stream]) -> Stream: ...
def concat(
    parts: Iterable[Dataset] | Iterable[Stream],
    *,
    columns: Literal["union"] | None = None,
    distinct: bool = False,
) -> Dataset | Stream:
    """Return the records of some datasets, one dataset after another; or of streams, in each lane.

    An epoch of a result of datasets is an epoch of each.

    Args:
        parts: at least one dataset, none of them endless; or streams of equally many lanes.
        columns: of datasets of dicts, ``"union"`` gives each record the columns of all parts, None in those
            that it lacks, in types that hold the values of all. Files of tables declare their columns; of
            other parts about 1,000 records are read now, and a record with a column that none of these has
            raises ``BadValue`` when it is read. Records stay as they are if left out.
        distinct: of datasets: True to leave out a row that has come before: the same row of the same file.
            No record is read. Rows must be the same in every epoch.

    Raises:
        InvalidArgument: there are none, streams have different numbers of lanes, no type holds the values of
            a column of several parts, or rows cannot be compared.
        EndlessDataset: a dataset has no end.
        WrongType: something else than datasets alone, or streams alone; records without columns.

    Example:
        >>> import seekable as sk
        >>> list(sk.concat([sk.from_sequence("ab"), sk.from_sequence("cd")]))
        ['a', 'b', 'c', 'd']
        >>> old, new = sk.from_sequence([{"id": 1}]), sk.from_sequence([{"id": 2.5, "lang": "de"}])
        >>> list(sk.concat([old, new], columns="union"))
        [{'id': 1.0, 'lang': None}, {'id': 2.5, 'lang': 'de'}]
        >>> letters = sk.from_sequence("abcdef")
        >>> list(sk.concat([letters[:3], letters[1:5]], distinct=True))
        ['a', 'b', 'c', 'd', 'e']
    """
    given, distinct = _listed("concat()", parts), checked_flag("distinct", distinct)
    if _are_streams("concat()", given):
        if columns is not None or distinct:
            name = "distinct" if columns is None else "columns"
            message = f"{name}= is for datasets: concatenate these, and make a stream of the result"
            raise InvalidArgument(message)
        return stream_face.Stream(stream_zip.Chain(tuple(stream.stage for stream in given)))
    nodes = _nodes("concat()", given)
    if columns is not None and union.checked_union("concat()", columns):
        nodes = union.unified_parts("concat()", nodes)
    return Dataset(filter_node.merged(nodes) if distinct else Concat(nodes))


@overload
def zip(parts: Iterable[Dataset]) -> Dataset: ...
@overload
def zip(parts: Iterable[Stream]) -> Stream: ...
def zip(parts: Iterable[Dataset] | Iterable[Stream]) -> Dataset | Stream:
    """Return tuples of records at the same positions in some datasets, or of the next items in streams.

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
    given = _listed("zip()", parts)
    if _are_streams("zip()", given):
        return stream_face.Stream(stream_zip.ZipItems(tuple(stream.stage for stream in given)))
    return Dataset(Zip(_nodes("zip()", given)))


def join(  # noqa: PLR0913 - the one public place that owns these defaults
    left: Dataset,
    right: Dataset,
    *,
    on: str | Sequence[str],
    how: How = "inner",
    duplicates: Duplicates = "error",
    missing: Literal["allow", "error"] = "allow",
    suffix: str | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: ProgressChoice = None,
) -> Dataset:
    """Return the records of one dataset, each with the columns of another dataset's record with its key.

    All keys are read once, in this call: first those of the right dataset, then those of the left one, which
    are looked up by hash and compared. Matching takes 16 bytes of memory for each row of the right dataset;
    the matched row numbers go to a temporary file. Records are read only when the result is read. A key is a
    str or an int, or several of those; ``"1"`` and ``1`` are different keys.

    Args:
        left: gives the order: the result has its rows, without those that match nothing.
        right: its keys are looked up.
        on: the column that both have, or several that are the key together.
        how: ``"inner"`` leaves out a record that matches nothing, ``"left"`` gives it None for every column
            of the right dataset.
        duplicates: if several records of the right have the same key: ``"error"``, ``"first"`` for the first
            of them, or ``"all"`` for a record with each.
        missing: ``"error"`` if each record of the left must match.
        suffix: is put after the name of a column of the right that the left has too; without it that is an
            error.
        jobs: the number of processes; 1 for this one alone. By default more are started if that pays.
        executor: any ``concurrent.futures.Executor`` to read keys in instead.
        progress: a function that is called with the progress; False for none. By default a bar on a terminal.

    Raises:
        WrongType: ``left`` or ``right`` is not a Dataset.
        InvalidArgument: an argument breaks a rule, or rows are not the same in every epoch.
        EndlessDataset: one of them has no length.
        MissingColumn: a table lacks a column of the key.
        BadKey: a key is neither a str nor an int.
        AmbiguousKey: several records have a key that is looked up.
        KeyNotFound: a record matches nothing, and ``missing="error"``.

    Example:
        >>> import seekable as sk
        >>> texts = sk.from_sequence([{"id": 1, "text": "a"}, {"id": 2, "text": "b"}])
        >>> langs = sk.from_sequence([{"id": 2, "lang": "de"}])
        >>> list(sk.join(texts, langs, on="id"))
        [{'id': 2, 'text': 'b', 'lang': 'de'}]
        >>> sk.join(texts, langs, on="id", how="left")[0]
        {'id': 1, 'text': 'a', 'lang': None}
    """
    for side in (left, right):
        if not isinstance(side, Dataset):
            message = f"join() takes two Datasets (got a {type(side).__name__}): wrap it in sk.from_sequence"
            raise WrongType(message)
    return Dataset(
        join_node.joined(
            node_of(left),
            node_of(right),
            on=on,
            how=how,
            duplicates=duplicates,
            missing=missing,
            suffix=suffix,
            jobs=jobs,
            executor=executor,
            progress=progress,
        )
    )


def _nodes(wanted_by: str, datasets: Sequence[Any]) -> tuple[Node, ...]:
    """Return the nodes of some datasets.

    Raises:
        InvalidArgument: ``datasets`` is empty.
        WrongType: an element is not a Dataset.
    """
    if not datasets:
        message = f"{wanted_by} needs at least one dataset (got none)"
        raise InvalidArgument(message)
    for i, part in enumerate(datasets):
        if not isinstance(part, Dataset):
            found = f"a {type(part).__name__} at {i}"
            message = f"{wanted_by} takes Datasets (got {found}): wrap it in sk.from_sequence"
            raise WrongType(message)
    return tuple(node_of(part) for part in datasets)


def _listed(wanted_by: str, parts: object) -> list[Any]:
    """Return parts as a list.

    Raises:
        WrongType: they are none.
    """
    if not isinstance(parts, Iterable):
        message = f"{wanted_by} takes a list of Datasets or of Streams (got a {type(parts).__name__})"
        raise WrongType(message)
    return list(parts)


def _are_streams(wanted_by: str, parts: Sequence[Any]) -> bool:
    """Return True if all parts are streams, False if none is.

    Raises:
        WrongType: some parts are streams, and others are not.
    """
    if all(isinstance(part, Dataset) for part in parts):
        return False
    streams = [isinstance(part, stream_face.Stream) for part in parts]
    if any(streams) and not all(streams):
        other = parts[streams.index(False)]
        message = (
            f"{wanted_by} takes Datasets alone or Streams alone (got a Stream and a {type(other).__name__}): "
            f"make streams of datasets with .stream()"
        )
        raise WrongType(message)
    return any(streams)
