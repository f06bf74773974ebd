"""Ray Data: datasets and streams as sources of Ray, and results of Ray as datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from seekable._arguments import checked_count, explains_keywords
from seekable._lazy import lazy
from seekable._optional import optional
from seekable._other_words import STORAGE
from seekable.dataset.dataset import Dataset, from_sequence
from seekable.errors import EndlessDataset, InvalidArgument, WrongType
from seekable.nodes.graph import known_size
from seekable.nodes.node import node_of
from seekable.stream.lane_items import StreamItems
from seekable.stream.stream import Stream
from seekable.writing.target import target_of

if TYPE_CHECKING:
    import os

    import ray
    from ray import data as ray_data
    from ray.data import Datasource

    import seekable.integrations.ray.block_columns as ray_blocks
    import seekable.integrations.ray.datasource as ray_datasource
    from seekable.formats.file_format import FileFormat
    from seekable.formats.lines import jsonl_writer
    from seekable.formats.tables import parquet_writer
    from seekable.integrations.ray.datasource import FileSink
    from seekable.storage.access import Storage
else:
    ray_blocks = lazy("seekable.integrations.ray.block_columns")
    ray_data = optional("ray.data", extra="ray")
    ray_datasource = lazy("seekable.integrations.ray.datasource")
    jsonl_writer = lazy("seekable.formats.lines.jsonl_writer")
    parquet_writer = lazy("seekable.formats.tables.parquet_writer")

__all__ = ["from_ray", "sk_sink", "sk_source"]

_POSITION = "position"


def sk_source(
    data: Dataset | Stream, *, epochs: int = 1, position: bool | str = False, schema: Any = None
) -> Datasource:
    """Return a source of Ray Data over a dataset or a stream: ``ray.data.read_datasource(sk_source(ds))``.

    Of a dataset, each task of Ray reads a run of consecutive positions, so shuffled and mixed datasets come
    in their order. Ray keeps the order of tasks only if it is asked to:
    ``ray.data.DataContext.get_current().execution_options.preserve_order = True``. Of a stream, which is
    sequential, each task makes the items of one lane: make it with as many lanes as there are CPUs. There the
    order is kept within a lane alone; sort by the column of positions for that of the stream.

    Blocks are tables of Arrow with one schema. Columns of Parquet and Arrow files become columns of blocks
    without a record in Python, and columns that the pipeline of Ray does not use are not read. Of other
    records up to 1,024 from the first to the last decide what the columns hold. Arrays of numpy become
    tensors of Ray, records that are not dicts the column ``"item"``, and holes are left out.

    Args:
        data: the dataset or the stream. All nodes must be able to read its files, and its index.
        epochs: the number of epochs of a dataset to read, one after another.
        position: adds a column of positions (of a stream: slots), int64, called ``"position"`` or as the
            string says.
        schema: a ``pyarrow.Schema``: the columns and their types.

    Raises:
        WrongType: ``data`` is no dataset and no stream, or records have no common columns.
        EndlessDataset: ``data`` has no end.
        InvalidArgument: an argument breaks a rule, or records have a column of the name ``position``.
        MissingDependency: Ray Data is not installed.

    Example:
        >>> from seekable.integrations.ray import sk_source
        >>> corpus = sk.open("corpus/*.jsonl").shuffle(seed=1)  # doctest: +SKIP
        >>> rows = ray.data.read_datasource(sk_source(corpus, position=True))  # doctest: +SKIP
    """
    _need_ray_data()
    name = _checked_position(position)
    made: ray_datasource.RayReads
    if isinstance(data, Dataset):
        known_size(node_of(data), "sk_source()")
        made = ray_datasource.DatasetReads.of(
            node_of(data), epochs=checked_count("epochs", epochs, least=1), position=name, schema=schema
        )
    elif isinstance(data, Stream):
        _check_ends(data, epochs)
        made = ray_datasource.StreamReads.of(StreamItems(data.stage), position=name, schema=schema)
    else:
        message = f"sk_source() takes a seekable Dataset or Stream (got a {type(data).__name__})"
        raise WrongType(message)
    if made.schema.names.count(name) > 1:
        message = f"records have a column {name!r} already: give that of positions another name, position=..."
        raise InvalidArgument(message)
    return ray_datasource.RecordSource(made)


def from_ray(ray_dataset: ray.data.Dataset, *, version: str | int | None = None) -> Dataset:
    """Return the rows of a dataset of Ray as a dataset: row ``r`` in constant time, as a dict.

    The dataset of Ray is executed now, and its blocks stay in the object store of the cluster, which writes
    to disk what is too much for its memory, as long as the result or a copy of it is there. So the result can
    be shuffled, filtered, tokenised and written in any format. Jobs run in this process (``jobs=1``) or with
    ``executor=RayExecutor()``, whose workers fetch only the blocks that they need; once such a job has sent
    the blocks to workers, they stay until this process ends. ``sk_sink`` writes JSON lines and Parquet
    without keeping all blocks.

    Args:
        ray_dataset: the dataset of Ray.
        version: stands for its content in the fingerprint. Left out, each call gives another fingerprint, so
            that no state and no written file is taken for one of these rows.

    Raises:
        WrongType: ``ray_dataset`` is no dataset of Ray.
        MissingDependency: Ray Data is not installed.

    Example:
        >>> from seekable.integrations.ray import from_ray
        >>> rows = from_ray(ray.data.range(1000))  # doctest: +SKIP
        >>> rows.filter(lambda row: row["id"] % 2 == 0).shuffle(seed=1).write_tar("out")  # doctest: +SKIP
    """
    if not isinstance(ray_dataset, ray_data.Dataset):
        message = f"from_ray() takes a ray.data.Dataset (got a {type(ray_dataset).__name__})"
        raise WrongType(message)
    rows, digest = ray_blocks.rows_of(ray_dataset)
    return from_sequence(rows, version=digest if version is None else version)


@explains_keywords(STORAGE)
def sk_sink(
    folder: str | os.PathLike[str],
    *,
    format: Literal["jsonl", "parquet"],  # noqa: A002 - its name wherever formats are named
    compression: str | None = None,
    schema: Any = None,
    min_rows_per_file: int | None = None,
    storage: Storage | None = None,
) -> FileSink:
    """Return a sink of Ray Data that writes JSON lines or Parquet as ``ds.write_jsonl`` and its like do.

    ``ray_dataset.write_datasink(sink)`` writes a file for each write task, ``part-00000.jsonl`` and so on, in
    the order of tasks: of rows, if Ray is asked to preserve the order. Each file appears whole or not at all,
    a task that Ray runs again replaces its own file, and a job that fails leaves none. Then ``sink.written``
    describes the files. Parquet files have small pages and page indexes, so single rows are cheap to read.

    Args:
        folder: a folder without data that all nodes share, or an address in an object store. One job at a
            time may write to it.
        format: ``"jsonl"`` or ``"parquet"``.
        compression: as in ``write_jsonl``, or in ``write_parquet``, which has ``"zstd"`` if left out.
        schema: of Parquet, a ``pyarrow.Schema``: the columns and their types; if left out, each file has
            those of its first block, and ``sk.open`` unites them.
        min_rows_per_file: the least rows of a file, but for the last; if left out, Ray's blocks decide.
        storage: how the store is reached, ``sk.Storage(options=...)``.

    Raises:
        InvalidArgument: an argument breaks a rule, or the folder holds data.
        MissingDependency: Ray Data is not installed.

    Example:
        >>> from seekable.integrations.ray import sk_sink
        >>> sink = sk_sink("out", format="parquet")  # doctest: +SKIP
        >>> ray.data.range(1000).write_datasink(sink)  # doctest: +SKIP
        >>> len(sk.open("out")), sink.written.rows  # doctest: +SKIP
        (1000, 1000)
    """
    _need_ray_data()
    form: FileFormat
    if format == "parquet":
        form = parquet_writer.parquet(compression=compression or "zstd", schema=schema)
    elif format == "jsonl" and schema is None:
        form = jsonl_writer.json_lines(compression=compression)
    else:
        message = f"format must be 'jsonl' or 'parquet', and schema= is for 'parquet' (got {format!r})"
        raise InvalidArgument(message)
    target, form = target_of(folder, form, storage)
    if target.file is not None:
        message = f"a sink writes a folder of files, and {target.file!r} is one file by its suffix"
        raise InvalidArgument(message)
    least = (
        None if min_rows_per_file is None else checked_count("min_rows_per_file", min_rows_per_file, least=1)
    )
    return ray_datasource.FileSink(target, form, min_rows_per_file=least)


def _need_ray_data() -> None:
    """Raise `MissingDependency` if Ray Data is not installed."""
    _ = ray_data.Dataset


def _checked_position(position: object) -> str | None:
    if isinstance(position, bool):
        return _POSITION if position else None
    if isinstance(position, str) and position:
        return position
    message = f"position must be True, False or the name of a column (got {position!r})"
    raise WrongType(message)


def _check_ends(stream: Stream, epochs: object) -> None:
    if epochs != 1:
        message = f"epochs= is for datasets: a stream says itself how many it has (got epochs={epochs!r})"
        raise InvalidArgument(message)
    if stream.endless:
        message = "this stream never ends: make it with stream(epochs=...), or cut it with take(k)"
        raise EndlessDataset(message)
