"""Every row of every kind of file is what pyarrow reads."""

from __future__ import annotations

import importlib
import io
import itertools
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather, ipc
from tests.formats.arrow.tables import Codec, Held, Kind, Pages, batch, opened, written
from tests.thrift import some

from seekable.errors import UnsupportedFormat
from seekable.formats.tables.arrow.arrow_format import ArrowFormat

if TYPE_CHECKING:
    from collections.abc import Callable

KINDS: list[Kind] = ["file", "stream"]
CODECS: list[Codec] = [None, "lz4", "zstd"]
SIZES = [0, 1, 7, 100]


def read(data: bytes) -> list[pa.RecordBatch]:
    """Return the record batches as pyarrow reads them."""
    if data.startswith(b"ARROW1"):
        reader = ipc.open_file(data)
        return [reader.get_batch(number) for number in range(reader.num_record_batches)]
    return list(ipc.open_stream(data))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_type_comes_as_pyarrow_reads_it(kind: Kind, codec: Codec) -> None:
    data = written([batch(rows, 0) for rows in SIZES], kind, codec)
    table, truth = opened(data), read(data)
    survey = ArrowFormat().read_layout(Held(data))
    assert survey.group_rows == tuple(SIZES)
    assert ipc.read_schema(pa.py_buffer(survey.schema)).equals(truth[0].schema, check_metadata=True)
    names = table.schema.names
    for group, wanted in enumerate(truth):
        rows = wanted.to_pylist()
        found = table.run(group, 0, wanted.num_rows, names)
        found.validate(full=True)
        assert found.schema.equals(wanted.schema)
        assert found.to_pylist() == rows
        for chosen in ([0], [2, 3], [0, 6], [1, 3, 5], [5, 99]):
            inside = [row for row in chosen if row < len(rows)]
            taken = table.rows(group, np.array(inside, np.int64), names)
            taken.validate(full=True)
            assert taken.schema.equals(wanted.schema)
            assert taken.to_pylist() == [rows[row] for row in inside]


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=4),
    st.sampled_from(list(itertools.product(KINDS, CODECS))),
    st.data(),
)
def test_any_rows_of_any_columns(sizes: list[int], how: tuple[Kind, Codec], draw: st.DataObject) -> None:
    data = written([batch(rows, 2 * seed) for seed, rows in enumerate(sizes)], *how)
    table, truth = opened(data), read(data)
    group = draw.draw(st.integers(0, len(sizes) - 1))
    names = draw.draw(st.lists(st.sampled_from(table.schema.names), unique=True))
    rows = sorted(draw.draw(st.sets(st.integers(0, sizes[group] - 1)))) if sizes[group] else []
    found = table.rows(group, np.array(rows, np.int64), names)
    assert (found.num_rows, found.schema.names) == (len(rows), names)
    wanted = truth[group].to_pylist()
    assert found.to_pylist() == [{name: wanted[row][name] for name in names} for row in rows]
    start, stop = sorted(draw.draw(st.tuples(*[st.integers(0, sizes[group])] * 2)))
    run = table.run(group, start, stop, names)
    assert run.num_rows == stop - start
    assert run.to_pylist() == [{name: row[name] for name in names} for row in wanted[start:stop]]


def of_polars(compression: Literal["uncompressed", "lz4", "zstd"], *, stream: bool) -> bytes:
    pl = importlib.import_module("polars")
    frame = pl.DataFrame(
        {"id": range(1000), "text": ["x" * (n % 9) for n in range(1000)], "l": [[1, 2]] * 1000}
    )
    frame = frame.with_columns(pl.col("text").cast(pl.Categorical).alias("c"))
    sink = io.BytesIO()
    if stream:
        frame.write_ipc_stream(sink, compression=compression)
    else:
        frame.write_ipc(sink, compression=compression)
    return sink.getvalue()


def of_feather() -> bytes:
    sink = io.BytesIO()
    feather.write_feather(pa.table({"a": range(70_000), "t": ["x"] * 70_000}), sink)
    return sink.getvalue()


def of_old_arrow(kind: Kind) -> bytes:
    """Written as Arrow 0.14 did, without what begins each message now."""
    sources = [pa.record_batch({"a": [1, 2], "t": ["x", None]}), pa.record_batch({"a": [3], "t": ["z"]})]
    return written(sources, kind, use_legacy_format=True, metadata_version=ipc.MetadataVersion.V4)


WRITERS: dict[str, Callable[[], bytes]] = {
    "polars": lambda: of_polars("uncompressed", stream=False),
    "polars, lz4": lambda: of_polars("lz4", stream=False),
    "polars, a stream": lambda: of_polars("uncompressed", stream=True),
    "polars, a stream, zstd": lambda: of_polars("zstd", stream=True),
    "feather": of_feather,
    "an old file": lambda: of_old_arrow("file"),
    "an old stream": lambda: of_old_arrow("stream"),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_what_others_write(writer: str) -> None:
    data = WRITERS[writer]()
    table, truth = opened(data), read(data)
    assert ArrowFormat().read_layout(Held(data)).group_rows == tuple(each.num_rows for each in truth)
    for group, wanted in enumerate(truth):
        found = table.run(group, 0, wanted.num_rows, table.schema.names)
        assert found.schema.equals(wanted.schema)
        assert found.equals(wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_a_survey_looks_at_no_body(kind: Kind) -> None:
    body = pa.record_batch({"a": np.zeros(100_000)})
    source = Held(written([body] * 5, kind))
    assert ArrowFormat().read_layout(source).group_rows == (100_000,) * 5
    assert source.asked < 0.01 * source.size


@pytest.mark.parametrize("codec", CODECS)
def test_other_columns_are_not_read_where_they_are_compressed(codec: Codec) -> None:
    rng = np.random.default_rng(0)
    body = pa.record_batch({"a": rng.random(100_000), "b": rng.random(100_000)})
    source = Held(written([body] * 2, "stream", codec))
    table = ArrowFormat().open(source, None)
    source.asked = 0
    assert table.rows(1, np.array([77_777]), ["b"]).to_pylist() == [{"b": body["b"][77_777].as_py()}]
    # What is not compressed is mapped: that a range is asked for reads nothing of it.
    assert source.asked < (body.nbytes * 0.6 if codec else body.nbytes * 1.1)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_compressed_is_not_copied(kind: Kind) -> None:
    data = written([pa.record_batch({"a": np.arange(1_000_000)})], kind)
    table = opened(data)
    before = pa.total_allocated_bytes()
    found = table.run(0, 10, 999_999, ["a"])
    assert pa.total_allocated_bytes() - before < 10_000
    assert found["a"][5].as_py() == 15


@pytest.mark.parametrize("kind", KINDS)
def test_spans_are_the_messages(kind: Kind) -> None:
    data = written([batch(5, 0), batch(9, 2)], kind)
    table = opened(data)
    (first, length), (second, _) = table.span(0), table.span(1)
    assert first + length == second
    assert data[first : first + 4] == b"\xff" * 4


def test_no_columns_have_rows_all_the_same() -> None:
    table = opened(written([batch(5)], "file"))
    assert table.rows(0, np.array([1, 4]), []).num_rows == 2
    assert table.run(0, 1, 5, []).num_rows == 4


def test_where_batches_of_a_stream_lie_is_kept() -> None:
    data = written([batch(50, seed) for seed in range(20)], "stream")
    pages, source = Pages(), Held(data)
    ArrowFormat().open(source, pages)
    assert pages.kept is not None
    first, source.asked = source.asked, 0
    table = ArrowFormat().open(source, pages)
    assert source.asked < 0.8 * first
    assert table.run(19, 0, 50, ["word"]).equals(read(data)[19].select(["word"]))
    file = Pages()
    ArrowFormat().open(Held(written([batch(5)], "file")), file)
    assert file.kept is None


@given(st.data())
def test_what_was_kept_and_is_damaged_is_made_anew(draw: st.DataObject) -> None:
    data = written([pa.record_batch({"a": [1]}), pa.record_batch({"a": [2, 3]})], "stream")
    pages = Pages()
    ArrowFormat().open(Held(data), pages)
    good = bytearray(pages.kept or b"")
    at = draw.draw(st.integers(0, len(good) - 1))
    good[at] ^= draw.draw(st.integers(1, 255))
    for bad in (bytes(good), bytes(good[:at]), b""):
        table = ArrowFormat().open(Held(data), Pages(bad))
        assert table.run(1, 0, 2, ["a"]).to_pylist() == [{"a": 2}, {"a": 3}]


def test_threads_read_at_once() -> None:
    data = written([batch(100, 2 * seed) for seed in range(10)], "stream", "zstd")
    table, truth = opened(data), [each.to_pylist() for each in read(data)]

    def right(number: int) -> bool:
        group, row, name = number % 10, number % 97, table.schema.names[number % len(table.schema.names)]
        return bool(
            table.rows(group, np.array([row]), [name]).to_pylist()[0][name] == truth[group][row][name]
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(right, range(some(2000))))


def test_the_format_is_a_small_value() -> None:
    assert pickle.loads(pickle.dumps(ArrowFormat())) == ArrowFormat()
    assert ArrowFormat().name == "arrow"


def test_columns_of_one_name_are_refused() -> None:
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(UnsupportedFormat, match="columns of one name: 'a'; rename them first"):
        opened(written([twice], "file"))


def test_no_record_batches_and_no_columns() -> None:
    for kind in KINDS:
        empty = written([pa.record_batch({"a": pa.array([], pa.int8())})], kind)
        assert ArrowFormat().read_layout(Held(empty)).group_rows == (0,)
        sink = pa.BufferOutputStream()
        with (ipc.new_file if kind == "file" else ipc.new_stream)(sink, pa.schema({})):
            pass
        assert ArrowFormat().read_layout(Held(sink.getvalue().to_pybytes())).group_rows == ()


def test_scattered_rows_of_what_is_compressed_are_decompressed_once() -> None:
    source = Held(written([pa.record_batch({"a": np.random.default_rng(0).random(100_000)})], "file", "zstd"))
    table = ArrowFormat().open(source, None)
    source.asked = 0
    rows = np.arange(0, 100_000, 997)
    assert (
        table.rows(0, rows, ["a"])["a"].to_pylist()
        == table.run(0, 0, 100_000, ["a"])["a"].take(rows).to_pylist()
    )
    assert source.asked < 2.5 * source.size


def test_a_child_process_reads_what_its_parent_opened() -> None:
    table = opened(written([batch(50)], "stream", "zstd"))
    wanted = table.run(0, 0, 50, ["text"]).to_pylist()
    pid = os.fork()
    if not pid:
        os._exit(table.run(0, 0, 50, ["text"]).to_pylist() != wanted)
    assert os.waitpid(pid, 0)[1] == 0
