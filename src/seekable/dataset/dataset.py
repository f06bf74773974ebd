"""The class ``Dataset``: reading by position, look-up by key, streams; datasets over sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self, SupportsIndex, final, overload

import numpy as np

from seekable._arguments import (
    AT_ONCE,
    POSITIONS,
    checked_count,
    checked_epoch,
    checked_version,
    explains_keywords,
)
from seekable._lazy import lazy
from seekable._other_words import STORAGE
from seekable.dataset.columns import ColumnTools
from seekable.dataset.ordering import RowMethods
from seekable.dataset.position import checked_place, checked_places, note_read
from seekable.errors import EndlessDataset, InvalidArgument, WrongType
from seekable.formats.table import plugged
from seekable.nodes.bases import leaves_of, positions_of_row, reads_objects
from seekable.nodes.display import explained
from seekable.nodes.graph import known_size
from seekable.nodes.readahead import reads_ahead
from seekable.storage.far import far
from seekable.writing.write_methods import WriteMethods

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Executor
    from typing import Protocol

    from numpy.typing import NDArray

    from seekable.dataset.pipeline import pipeline_file
    from seekable.nodes import key as keys
    from seekable.nodes import key_lookup as lookup
    from seekable.nodes import sequence_source, without_last
    from seekable.nodes import slice as slice_node
    from seekable.nodes.columns import names as column_names
    from seekable.nodes.graph import Plan
    from seekable.nodes.key_lookup import KeySequence
    from seekable.nodes.sequence_source import SupportsItems
    from seekable.parallel.progress import ProgressChoice
    from seekable.storage.access import Storage
    from seekable.stream import from_dataset as stream_source
    from seekable.stream import stream as stream_face
    from seekable.stream.stream import Stream
    from seekable.writing import write_dataset
    from seekable.writing.write_source import WriteSource

    class FimOptions(Protocol):
        """What type checkers know here of ``sk.Fim``."""

        @property
        def rate(self) -> float: ...
        @property
        def sentinels(self) -> tuple[int, int, int]: ...
        @property
        def spm(self) -> float: ...
        @property
        def end_tokens(self) -> int: ...

    class PackingOptions(Protocol):
        """What type checkers know here of ``sk.Packing``."""

        @property
        def order(self) -> Literal["table", "exchange", "megatron"] | None: ...
        @property
        def long(self) -> Literal["split", "truncate", "drop"]: ...
        @property
        def pad(self) -> int: ...

    Fim = FimOptions
    Packing = PackingOptions
else:
    pipeline_file = lazy("seekable.dataset.pipeline.pipeline_file")
    column_names = lazy("seekable.nodes.columns.names")
    keys = lazy("seekable.nodes.key")
    lookup = lazy("seekable.nodes.key_lookup")
    sequence_source = lazy("seekable.nodes.sequence_source")
    slice_node = lazy("seekable.nodes.slice")
    stream_source = lazy("seekable.stream.from_dataset")
    stream_face = lazy("seekable.stream.stream")
    without_last = lazy("seekable.nodes.without_last")
    write_dataset = lazy("seekable.writing.write_dataset")

__all__ = ["Dataset", "from_sequence"]

_ELSEWHERE_OF_PACK = {
    name: f"method=sk.Packing({name}=...)"
    for name in ("order", "samples", "most", "long", "positions", "pad")
}
"""Where a value goes that people give to ``pack`` itself."""


@final
class Dataset(RowMethods, ColumnTools, WriteMethods):
    """A function from positions to records; position ``p`` is row ``p % n`` of epoch ``p // n``.

    Datasets are immutable descriptions: combining them reads nothing, and they may be shared by threads,
    forked, pickled and iterated over several times at once. They come from ``seekable.open`` and
    ``seekable.from_sequence``.

    Example:
        >>> import seekable as sk
        >>> ds = sk.from_sequence(["a", "b", "c", "d"]).shuffle(seed=1)
        >>> len(ds), sorted(ds), ds[[0, 1]] == [ds[0], ds[1]]
        (4, ['a', 'b', 'c', 'd'], True)
    """

    __slots__ = ()

    @property
    def lanes(self) -> int:
        """The number of lanes that the order is made for; row ``r`` belongs to lane ``r % lanes``."""
        return self._node.lanes

    @property
    def fingerprint(self) -> str:
        """The digest of everything that decides the records and their order."""
        return self._node.fingerprint

    @property
    def columns(self) -> list[str]:
        """The names of the columns of records, in their order.

        Parquet, Arrow, tar, Shar and the data directories of Kaldi declare them, and no record is read. Of
        other datasets they are the names in the first 1,000 records.

        Raises:
            WrongType: records are not dicts.

        Example:
            >>> import seekable as sk
            >>> sk.from_sequence([{"id": 1, "text": "a"}]).columns
            ['id', 'text']
        """
        return column_names.columns_of(self._node)

    def __len__(self) -> int:
        """Return the number of records of an epoch.

        Raises:
            EndlessDataset: the dataset has no end (a TypeError, as of other objects without a length).
        """
        return known_size(self._node, "len()")

    def __bool__(self) -> bool:
        """Return True if there is any record."""
        return self._node.size != 0

    def __enter__(self) -> Self:
        """Return the dataset, whose files are closed at the end of the ``with`` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files, as ``close`` does."""
        self.close()

    def close(self) -> None:
        """Close all files that the dataset reads; ``del ds`` does the same when it is the last one over them.

        A dataset is a description, so it stays usable: reading opens the files again. Datasets made of one
        another, and their loaders, share the open files; those of other calls of ``sk.open`` do not.

        Example:
            >>> import pathlib, tempfile, seekable as sk
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     _ = pathlib.Path(folder, "a.txt").write_text("one")
            ...     with sk.open(folder) as ds:
            ...         ds[0]
            'one'
        """
        for source in leaves_of(self._node):
            source.close()

    def __iter__(self) -> Iterator[Any]:
        """Yield the records of epoch 0 once."""
        for count, plan, ahead in reads_ahead(self._planned()):
            for first in range(0, count, _AT_ONCE):
                last = min(first + _AT_ONCE, count)
                ahead.read_to(last)
                yield from plan.slice(first, last).read()

    def __contains__(self, record: object) -> bool:
        """Return True if a record of epoch 0 is equal to an object; all are read.

        Raises:
            EndlessDataset: the dataset has no end.
        """
        if self._node.size is None:
            raise EndlessDataset("an endless dataset cannot be searched: take(n) gives it an end")
        return record in iter(self)

    def _planned(self) -> Iterator[tuple[int, Plan]]:
        """Yield the plans of epoch 0 in their order, each with its number of records."""
        start, size = 0, self._node.size
        while size is None or start < size:
            stop = start + _AHEAD if size is None else min(start + _AHEAD, size)
            yield stop - start, self._node.plan(np.arange(start, stop, dtype=np.int64))
            start = stop

    @overload
    def __getitem__(self, rows: slice) -> Dataset: ...
    @overload
    def __getitem__(self, rows: Any) -> Any: ...
    def __getitem__(self, rows: Any) -> Any:
        """Return a record, a list of records in the order given, or the Dataset of a slice.

        Of tables that are decoded as ``"numpy"`` or ``"arrow"`` a list of rows gives a dict of arrays, or a
        record batch.

        Args:
            rows: a row of epoch 0, ``-n <= row < n``; a list, tuple or array of those; or a slice. A
                ``Position``, or a list or tuple of those, means records of any epoch.

        Raises:
            OutOfRange: the dataset does not have a row (an IndexError).
            WrongType: ``rows`` is of another type, or mixes rows and positions.
            SeekableError: a record cannot be read: it is damaged, its file was changed or cannot be reached.
        """
        # Plain integers are tested first: they are the way to single records.
        node = self._node
        if type(rows) is int and (size := node.size) is not None and 0 <= rows < size:
            return self._record(rows) if self._fetches is not False else node.record(rows)
        if isinstance(rows, slice):
            return self._over(slice_node.cut(node, rows))
        if isinstance(rows, list | tuple | np.ndarray):
            return note_read(rows, self._batch_at(checked_places(rows, node.size)))
        return note_read(rows, self._record(checked_place(rows, node.size)))

    def _record(self, position: int) -> Any:
        """Return the record at a position; from object stores with all of its bytes in one round trip."""
        if self._fetches is None:
            self._fetches = reads_objects(self._node)
        if self._fetches:
            return self._node.fetch(np.array([position], dtype=np.int64))[0]
        return self._node.record(position)

    def __getitems__(self, rows: Sequence[int]) -> list[Any]:
        """Return ``self[rows]`` for a list of rows or positions; PyTorch's loaders call this name."""
        records: list[Any] = note_read(rows, self._batch_at(checked_places(rows, self._node.size)))
        return records

    _getitems = __getitems__

    @overload
    def locate(self, rows: list[Any] | tuple[Any, ...] | NDArray[Any]) -> list[Any]: ...
    @overload
    def locate(self, rows: SupportsIndex) -> Any: ...
    def locate(self, rows: Any) -> Any:
        """Return the location of a row in epoch 0, or a list of locations for a list of rows.

        Returns:
            A ``Location`` (absolute path, row in the file, byte offset, length without the line end); of a
            batch a list of them, of a zip a tuple.

        Raises:
            OutOfRange, WrongType: the dataset does not have a row, or ``rows`` is of another type.
        """
        if isinstance(rows, list | tuple | np.ndarray):
            return self._node.plan(checked_places(rows, self._node.size)).locate()
        return self._node.plan(np.array([checked_place(rows, self._node.size)], dtype=np.int64)).locate()[0]

    def find(self, path: str | os.PathLike[str], row: int, *, epoch: int = 0) -> list[int]:
        """Return the sorted positions at which a row of a file comes in an epoch.

        The order is inverted, not searched: the cost does not grow with the number of records.

        Args:
            path: the file, as a path or an address.
            row: the record's number in the file, from 0.
            epoch: the epoch of this dataset; of an endless one, the epoch of the source.

        Returns:
            The absolute positions; those of epoch ``e`` lie from ``e * n`` on.
        """
        row, epoch = checked_count("row", row, least=0), checked_epoch(epoch, self._node.size)
        found = positions_of_row(self._node, path, row, range(epoch, epoch + 1))
        return [int(position) for position in found]

    def key(self, key: Any) -> Any:
        """Return the record that has a key, or a list of records for a list of keys, in their order.

        ``sk.open(..., key=)`` decides what the keys of a source are, and every node above it must have the
        same rows in every epoch: map, concat, zip, filter, split, select and the like. Where the record comes
        several times (``select`` may repeat rows), it is the first of them.

        Args:
            key: a str or an int, which are different keys, or a list of those.

        Raises:
            KeyNotFound: no record of the dataset has the key (a KeyError).
            AmbiguousKey: several records have it (a KeyError).
            InvalidArgument: no source was opened with keys, or rows differ from epoch to epoch.

        Example:
            >>> import pathlib, tempfile, seekable as sk
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     lines = '{"id": "x", "n": 1}', '{"id": "y", "n": 2}'
            ...     _ = pathlib.Path(folder, "a.jsonl").write_text(chr(10).join(lines))
            ...     ds = sk.open(folder, key="id").map(lambda record: record["n"])
            ...     ds.key("y"), ds.key(["y", "x"])
            (2, [2, 1])
        """
        if self._lookup is None:
            self._lookup = lookup.lookup_of(self._node)
        if isinstance(key, list | tuple | np.ndarray):
            positions = [self._lookup.position(keys.asked_key(each)) for each in key]
            return self._node.fetch(np.array(positions, dtype=np.int64))
        return self._lookup.record(keys.asked_key(key))

    def keys(self) -> KeySequence:
        r"""Return the keys of the records as a sequence, which is read when it is used.

        Kaldi's tables have keys of their own; of other data ``sk.open(..., key=)`` decides what the keys are.
        The sequence has ``len``, iteration, rows by number, slices, and ``in``, which looks into the index of
        keys. Objects of Kaldi's tables are not read.

        Raises:
            InvalidArgument: a source was opened without keys, or records are made of several.
            EndlessDataset: the dataset has no end.

        Example:
            >>> import pathlib, tempfile, seekable as sk
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     _ = pathlib.Path(folder, "a.ark").write_bytes(b"utt1 [ 1 2 ]\nutt2 [ 3 ]\n")
            ...     keys = sk.open(folder, format=sk.formats.Kaldi(holder="vector")).keys()
            ...     list(keys), keys[1], "utt2" in keys
            (['utt1', 'utt2'], 'utt2', True)
        """
        return lookup.keys_of(self._node)

    def explain(self) -> str:
        """Return the pipeline as a tree: each node with its arguments, records and files.

        Below it is what reading fetches of object stores: the size of requests, and advice where it is small.
        """
        lines = explained(self._node)
        if reads_objects(self._node):
            lines += far().reads.facts(self._node)
        return "\n".join(lines)

    def stream(self, *, lanes: int | None = None, epochs: int | None = None, start: int = 0) -> Stream:
        """Return the records as a stream, which can filter, flatten, pack and bucket as it goes.

        Lane ``l`` has the rows ``r % lanes == l`` of each epoch, in their order; slot ``s`` of the stream is
        the next item of lane ``s % lanes``. Ranks and workers divide the lanes among themselves, so at most
        ``lanes`` ranks can share the stream, and its order does not depend on how many do.

        Args:
            lanes: the number of lanes; by default that of the dataset's order, mostly 1.
            epochs: the number of epochs after which it ends; never if left out.
            start: the position of the dataset with which it begins.

        Raises:
            InvalidArgument: an argument breaks a rule, or positions would not fit 64 bits.

        Example:
            >>> import seekable as sk
            >>> list(sk.from_sequence(range(5)).stream(lanes=2, epochs=1).map(lambda n: n * n))
            [0, 1, 4, 9, 16]
        """
        start = checked_count("start", start, least=0)
        epochs = None if epochs is None else checked_count("epochs", epochs, least=0)
        last = start + (epochs or 0) * (self._node.size or 0)
        if last >= POSITIONS:
            message = f"a stream must end before position 2**63 (got start={start}, epochs={epochs})"
            raise InvalidArgument(message)
        lanes = self._node.lanes if lanes is None else checked_count("lanes", lanes, least=1, below=AT_ONCE)
        return stream_face.Stream(stream_source.FromDataset(self._node, lanes, epochs, start))

    @explains_keywords(STORAGE)
    def save(self, path: str | os.PathLike[str], *, storage: Storage | None = None) -> None:
        """Write the pipeline to a JSON file, from which ``sk.load_pipeline`` makes it again.

        The file has the nodes with their arguments, the data files by name and digest, and the names of
        functions and sequences. It has no code and no records. Rows that a filter, a selection or a join has
        chosen are written beside it: of ``pipeline.json`` to the folder ``pipeline.rows``, 8 bytes a row. All
        files appear whole or not at all, the pipeline file last.

        Args:
            path: the file; one that is there is replaced. Its row files stay, as a copy of it may need them.
                Its path, or its address in a store.
            storage: how the store is reached, ``sk.Storage(options=...)``, if the path is an address.

        Raises:
            InvalidArgument: a value cannot be written.
            IndexStale, CorruptState: the rows of a filter are gone, or have changed.
            OSError: the folder cannot be written, or the disk is full.

        Example:
            >>> import pathlib, tempfile, seekable as sk
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     _ = pathlib.Path(folder, "a.txt").write_text("one")
            ...     sk.open(folder).map(str.upper).save(f"{folder}/pipeline.json")
            ...     ds = sk.load_pipeline(f"{folder}/pipeline.json", functions={"upper": str.upper})
            ...     ds[0]
            'ONE'
        """
        pipeline_file.write_pipeline(self._node, path, storage)

    def _to_write(self, call: str) -> WriteSource:
        return write_dataset.dataset_source(self._node, call)

    # Methods for records with a list of token ids, such as token files. Their code is that of a subject that
    # ``seekable.formats.table`` names. The lengths of documents come from the index of token files; otherwise
    # all records are read once, when the method is called.

    def windows(  # noqa: PLR0913 - keywords
        self,
        length: int,
        *,
        next_token: bool = False,
        align: Iterable[str] = (),
        columns: Iterable[str] | None = None,
        key: str | None = "tokens",
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressChoice = None,
    ) -> Self:
        """Return the tokens of all documents end to end, cut into arrays of ``length`` tokens.

        Documents are in their order, and every epoch has the same windows: shuffle them as any other records.
        What is left at the end, fewer tokens than a window has, is in none.

        Args:
            length: the number of tokens of a window.
            next_token: True for ``length + 1`` tokens: each window begins with the last token of the one
                before, so that every token but the first is predicted once.
            align: names of arrays in the records that have one value for each token, such as ``"loss_mask"``.
            columns: the names of the columns of records; by default ``"tokens"`` and the aligned arrays; all
                columns of ``pack`` can be named.
            key: the name of the tokens in records; None if the records are the lists.
            jobs: the most processes that read records to count their tokens.
            executor: reads them instead.
            progress: called as they are read; by default a bar on a terminal.

        Raises:
            InvalidArgument: there are fewer tokens than a window needs, the rows differ between epochs, or an
                argument breaks a rule.
            EndlessDataset: the dataset has no length.
            MissingColumn, WrongType: a record has no flat list of integers under a name.

        Example:
            >>> import seekable as sk
            >>> docs = sk.from_sequence([{"tokens": [1, 2, 3]}, {"tokens": [4, 5, 6, 7, 8]}])
            >>> [window["tokens"].tolist() for window in docs.windows(4)]
            [[1, 2, 3, 4], [5, 6, 7, 8]]
        """
        return self._over(
            plugged("packing").windows(
                self._node,
                length,
                next_token=next_token,
                align=align,
                columns=columns,
                key=key,
                jobs=jobs,
                executor=executor,
                progress=progress,
            )
        )

    @explains_keywords(_ELSEWHERE_OF_PACK)
    def pack(  # noqa: PLR0913 - keywords
        self,
        length: int,
        *,
        seed: int,
        method: Literal["concat", "best_fit"] | Packing = "concat",
        fim: Fim | None = None,
        next_token: bool = False,
        labels: Literal["within", "across"] | None = None,
        align: Iterable[str] = (),
        key: str | None = "tokens",
        columns: Iterable[str] | None = None,
        jobs: int | None = None,
        executor: Executor | None = None,
        progress: ProgressChoice = None,
    ) -> Self:
        """Return samples of ``length`` tokens, packed of documents in a new order each epoch.

        Any sample of any epoch is computed when it is read; nothing is built for an epoch. A record has:

        - ``tokens``: the tokens of the sample's pieces of documents, in the type of the documents;
        - ``segment_ids``: the number of the piece that each token is of, int32 from 1; 0 where padded;
        - ``positions``: int32, from 0 in each piece;
        - the aligned arrays, 0 where padded.

        Args:
            length: the number of tokens of a sample.
            seed: ``0 <= seed < 2**64``.
            method: ``"concat"`` puts documents end to end and cuts them; a tail shorter than a sample is left
                out, another one each epoch. ``"best_fit"`` cuts no document that is not longer than a sample,
                and pads samples. ``sk.Packing(...)`` says more: the order of documents, the fate of long
                ones, how positions count, the token of padding.
            fim: rearranges some documents for fill-in-the-middle; a sentinel is 0 in aligned arrays.
            next_token: True for arrays of ``length + 1`` tokens, the last of which is the first
                of another sample of ``"concat"``.
            labels: adds ``labels``, the token after each one, and ``loss_mask``, uint8: 1 where a label
                counts. It is 0 for padding, with ``"within"`` for the first token of a piece, and where an
                aligned array ``"loss_mask"`` has 0 for the label.
            align: names of arrays in the records that have one value for each token.
            key: the name of the tokens in records; None if the records are the lists.
            columns: the names of the columns of records. Beside those above there are ``cu_seqlens``, int32:
                0 and then the end of each piece; and ``max_seqlen``, an int: the tokens of the longest one.
            jobs: the most processes that read records to count their tokens.
            executor: reads them instead.
            progress: called as they are read; by default a bar on a terminal.

        Raises:
            InvalidArgument: there are fewer tokens than a sample needs, the rows differ between epochs, or an
                argument breaks a rule or does not go with another.
            EndlessDataset: the dataset has no length.
            MissingColumn, WrongType: a record has no flat list of integers under a name.

        Example:
            >>> import seekable as sk
            >>> docs = sk.from_sequence([{"tokens": [1, 2, 3]}, {"tokens": [4, 5, 6, 7, 8]}])
            >>> sample = docs.pack(8, seed=7)[0]
            >>> sorted(sample["tokens"].tolist()), sample["segment_ids"].dtype
            ([1, 2, 3, 4, 5, 6, 7, 8], dtype('int32'))
        """
        below, left_out = without_last.set_aside(self._node, "pack()")
        return self._over(
            left_out(
                plugged("packing").pack(
                    below,
                    length,
                    seed=seed,
                    method=method,
                    fim=fim,
                    next_token=next_token,
                    labels=labels,
                    align=align,
                    key=key,
                    columns=columns,
                    jobs=jobs,
                    executor=executor,
                    progress=progress,
                )
            )
        )


_AHEAD = 4096
"""The number of positions whose order is resolved at a time."""

_AT_ONCE = 64
"""The number of records that plain iteration reads at a time."""


def from_sequence(sequence: SupportsItems, *, version: str | int | None = None) -> Dataset:
    """Return a dataset over a sequence: a list, an array, another library's dataset.

    If it has ``__getitems__`` (PyTorch's name for reading a list of rows together), that is called.

    Args:
        sequence: an object with ``__len__`` and ``__getitem__`` of rows. It must not change, and it is
            pickled with the dataset.
        version: enters the fingerprint, beside the type's name and the length, which is all that a state can
            check.

    Raises:
        WrongType: ``sequence`` has no length or no items, or ``version`` is not a str or an int.

    Example:
        >>> import seekable as sk
        >>> ds = sk.from_sequence(["a", "b", "c"])
        >>> len(ds), ds[-1], list(ds[::2])
        (3, 'c', ['a', 'c'])
    """
    if not (hasattr(sequence, "__len__") and hasattr(sequence, "__getitem__")) or isinstance(sequence, dict):
        message = f"from_sequence needs __len__ and __getitem__ by row (got {type(sequence).__name__})"
        raise WrongType(message)
    checked_version(version)
    return Dataset(sequence_source.SequenceSource(sequence, version))
