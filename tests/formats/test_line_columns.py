"""Lines as columns: a batch has the rows that its records are, one by one, or the error of one of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.formats.test_json_fields import VALUES

import seekable as sk
from seekable.formats.lines.line_columns import LineColumns
from seekable.formats.lines.line_source import decoder_named
from seekable.nodes.columns.record_batches import numpy_batch, table_of

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema(
    {
        "i": pa.int64(),
        "f": pa.float64(),
        "s": pa.string(),
        "b": pa.bool_(),
        "l": pa.list_(pa.float64()),
        "k": pa.list_(pa.int64()),
        "z": pa.list_(pa.list_(pa.string())),
        "n": pa.null(),
        "d": pa.struct({"a": pa.int64(), "e": pa.list_(pa.float64())}),
    }
)
COLUMNS = LineColumns("arrow", decoder_named("json"), SCHEMA)

WHOLE = b'{"i":1,"f":0.5,"s":"a","b":true,"l":[1,0.5],"k":[1],"z":[["x"]],"n":null,"d":{"a":1,"e":[2]}}'
TOKENS = [
    *(
        b"0",
        b"-0",
        b"-0.0",
        b"7",
        b"1.0",
        b"1e3",
        b"-2.5e-3",
        b"1e999",
        b"NaN",
        b"-Infinity",
        b"nan",
        b"1e-400",
    ),
    *(str(number).encode() for number in (2**53, 2**53 + 1, 2**63, -(2**63), 2**64, 10**30)),
    *(b"01", b"1.", b"+1", b"9" * 4301, b"true", b"null", b"tru", b'"x"', b'"\\ud800"', b'"\\ud83d\\ude00"'),
    *(
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\x00"',
        b'"\\u0000"',
        '"é"'.encode(),
        b'"\\x"',
        b"[]",
        b"[1,null,2.5]",
    ),
    *(b"[1,9007199254740993]", b'["x"]', b"[[]]", b'[["a",null],null]', b"{}", b'{"a":1}', b'{"a":1.0}'),
    *(b'{"e":[9007199254740993]}', b'{"e":null,"a":null}', b'{"x":1}', b"[" * 30 + b"]" * 30, b""),
]
NAMES = [
    *(b'"%s"' % name.encode() for name in SCHEMA.names),
    b'"\\u0069"',
    b'"unknown"',
    b'""',
    '"é"'.encode(),
]
ENDS = [b"\n", b"\r\n", b"", b"\n\n \n", b" x\n", b"\x00\n", b"}\n", b" {}\n"]
ODD = [b'{"i":1} {"i":2}\n', b'{"d":{"a":1}\n', b'{"i":1}}\n', b'{"s":"a}\n', b'{b"}\n', b'{"d":\n']


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """Return a line that is mostly an object of fields that fit, or nearly."""
    if draw(st.integers(0, 7)) == 0:
        return draw(
            st.sampled_from([WHOLE, *ODD, b"[1]", b"7", b"null", b'"i"', b"\xef\xbb\xbf{}", b" {}", b"{"])
        )
    values = st.sampled_from(TOKENS) | VALUES.map(lambda value: json.dumps(value).encode())
    fields = draw(st.lists(st.tuples(st.sampled_from(NAMES), values), max_size=4))
    return (
        b"{" + b",".join(name + b":" + value for name, value in fields) + b"}" + draw(st.sampled_from(ENDS))
    )


def alone(decoder: LineColumns, line: bytes) -> Any:
    """Return a record that is decoded by itself, or its error."""
    try:
        return decoder.fast(memoryview(line))
    except Exception:  # noqa: BLE001 - as the source does
        try:
            return decoder.recover(line[: decoder.span(memoryview(line))])
        except ValueError as error:
            return error


def same(one: Any, other: Any) -> bool:
    """Return True for equal values of equal types, zeros of one sign among them."""
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and list(one) == list(other)
            and all(map(same, one.values(), other.values()))
        )
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        alike = isinstance(other, np.ndarray) and one.dtype == other.dtype
        return alike and same(one.tolist(), other.tolist())
    if isinstance(one, float) and isinstance(other, float):
        return repr(one) == repr(other)
    return type(one) is type(other) and bool(one == other)


@given(some=st.lists(lines(), min_size=1, max_size=3), needed=st.none() | st.just(frozenset({"i", "f", "s"})))
@example(some=[WHOLE], needed=None)
@example(some=[b'{"i":-0,"f":-0}', b'{"f":-0.0}'], needed=None)
@example(some=[b'{"f":9007199254740993}'], needed=None)
@example(some=[b'{"i":1,"unknown":"\xff"}'], needed=frozenset({"i"}))
@example(some=[b'{"i":1,"unknown":1e999}'], needed=frozenset({"i"}))
@example(some=[b'{"i":1,"i":"x","i":2}'], needed=None)
@example(some=[b'{"i":1}\n', b'{"f":1e300,"l":[1e300,null]}\n'], needed=None)
@example(some=[b'{"i":1} {"i":2}\n', b'{"d":{"a":1}\n', b'{"i":1}}\n'], needed=None)
def test_many_lines_are_what_each_is_alone(some: list[bytes], needed: frozenset[str] | None) -> None:
    decoder = COLUMNS if needed is None else COLUMNS.narrowed(needed)
    views, singles = [memoryview(line) for line in some], [alone(decoder, line) for line in some]
    try:
        batch = decoder.table(views, [])
    except Exception:  # noqa: BLE001 - then the records are read one by one
        assert some != [WHOLE]
        with pytest.raises(Exception):  # noqa: B017, PT011
            decoder.arrays(views)
        return
    assert not any(isinstance(single, Exception) for single in singles)
    assert same(batch.to_pylist(), pa.concat_batches(singles).to_pylist())
    try:
        expected = numpy_batch(batch)
    except sk.errors.BadValue:
        with pytest.raises(ValueError, match="inhomogeneous"):
            decoder.arrays(views)
    else:
        assert same(decoder.arrays(views), expected)


@given(line=lines())
@example(line=WHOLE)
def test_a_row_holds_the_record_that_a_line_is(line: bytes) -> None:
    plain = decoder_named("json")
    try:
        record = plain.fast(memoryview(line))
    except Exception:  # noqa: BLE001 - as the source does
        try:
            record = plain.recover(line[: plain.span(memoryview(line))]) if plain.recover else None
        except ValueError:
            assert isinstance(alone(COLUMNS, line), ValueError)
            return
    row = alone(COLUMNS, line)
    if isinstance(row, ValueError):
        assert line != WHOLE
        return
    assert held(row.to_pylist()[0], record)


def held(value: Any, record: Any) -> bool:
    """Return True if a value of a row is that of a record: what a record lacks is None."""
    if isinstance(value, dict):
        return set(record) <= set(value) and all(held(value[name], record.get(name)) for name in value)
    if isinstance(value, list):
        return len(value) == len(record) and all(map(held, value, record))
    if isinstance(value, float) and isinstance(record, int):
        return not isinstance(record, bool) and int(value) == record
    return same(value, record)


@given(
    text=st.lists(
        st.sampled_from([*'ab,"\n\r\x00 é\ufeff', ',"', '",', '""', "\r\n", '"\n', "1,2\n"]), max_size=30
    ).map("".join),
    header=st.sampled_from(["x,y\n", "x\n", '"x",y,z\r\n']),
    seed=st.integers(0, 9),
)
@example(text='1,"a\n"\n2,\n', header="x,y\n", seed=0)
@example(text='1,2\n3,"4', header="x,y\n", seed=1)
@example(text="\ufeff,2\n3,4\n", header="x,y\n", seed=0)
@example(text="3,4\n\ufeff,2\n", header="x,y\n", seed=0)
def test_records_of_csv_are_what_each_is_alone(
    tmp_path_factory: pytest.TempPathFactory, text: str, header: str, seed: int
) -> None:
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_bytes((header + text).encode())
    try:
        plain = sk.open(path, errors=lambda _: sk.HOLE, index=sk.Index(jobs=1))
    except sk.SeekableError:
        return
    records = [plain[row] for row in range(len(plain))]
    ds = sk.open(path, decode="arrow", index=sk.Index(jobs=1))
    rows = ds.shuffle(seed)
    order = [plain.shuffle(seed)[row] for row in range(len(plain))]
    if any(record is sk.HOLE for record in records):
        with pytest.raises(sk.CorruptRecord):
            rows.to_arrow()
    elif records:
        assert rows.to_arrow().to_pylist() == order


def written(tmp_path: Path, records: list[Any]) -> Path:
    """Write lines of JSON."""
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize("form", ["numpy", "arrow"])
def test_a_record_that_fits_no_column_is_named(tmp_path: Path, form: str) -> None:
    path = written(tmp_path, [{"a": row} for row in range(1100)] + [{"a": "x"}, {"a": 1, "b": 2}])
    ds = sk.open(path, decode=form)
    for row, said in ((1100, "column 'a' is int64"), (1101, "it has 'b'")):
        for read in (
            lambda row=row: ds[row],
            lambda row=row: ds[[0, row]],
            lambda row=row: list(ds.skip(row)),
        ):
            with pytest.raises(sk.CorruptRecord, match=said) as found:
                read()
            assert (found.value.path, found.value.row) == (str(path), row)
            assert found.value.offset == ds.locate(row).offset
    held_out = sk.open(path, decode=form, errors=lambda _: sk.HOLE)
    assert sum(record is sk.HOLE for record in held_out) == 2
    chosen = sk.open(path, decode=form, columns=["a"])
    assert chosen.to_arrow([1101, 3]).to_pylist() == [{"a": 1}, {"a": 3}]
    with pytest.raises(sk.errors.InvalidArgument, match="none of the first 1000 records has a column 'b'"):
        sk.open(path, decode=form, columns=["b"])


def test_values_without_a_common_type_are_refused(tmp_path: Path) -> None:
    with pytest.raises(sk.errors.UnsupportedFormat, match=r"a.jsonl row 1: field 'a'"):
        sk.open(written(tmp_path, [{"a": 1}, {"a": "x"}]), decode="arrow")
    with pytest.raises(sk.errors.UnsupportedFormat, match=r"row 0: the record is no object but list"):
        sk.open(written(tmp_path, [[1]]), decode="numpy")
    with pytest.raises(sk.errors.BadKey, match="it is a RecordBatch"):
        sk.open(written(tmp_path, [{"a": 1}]), decode="arrow", key="a")
    (tmp_path / "a.txt").write_text("a\n")
    with pytest.raises(sk.errors.InvalidArgument, match="decode must be one of"):
        sk.open(tmp_path / "a.txt", decode="arrow")


@pytest.mark.parametrize("form", ["numpy", "arrow"])
def test_batches_of_columns_are_those_of_records(tmp_path: Path, form: str) -> None:
    records = [{"id": row, "x": row / 3, "text": f"é{row}"} for row in range(50)]
    path = written(tmp_path, records)
    ds, plain = sk.open(path, decode=form), sk.open(path)

    def mixed(one: sk.Dataset) -> sk.Dataset:
        return sk.mix([one.shuffle(1), one.shuffle(2, window=2).take(20)], seed=3)

    loader = sk.Loader(mixed(ds), batch_size=7, epochs=2)
    wanted = iter(sk.Loader(mixed(plain), batch_size=7, epochs=2))
    for batch, expected in zip(loader, wanted, strict=True):
        made = batch if form == "numpy" else sk.collate(batch.to_pylist())
        assert repr(made) == repr(expected)


@pytest.mark.parametrize("form", ["numpy", "arrow"])
def test_small_batches_are_read_together(tmp_path: Path, form: str) -> None:
    rows = [f'{row},"te,xt"' for row in range(50)]
    (tmp_path / "a.csv").write_text("\n".join(["id,text", *rows]))
    written(tmp_path, [{"id": str(row), "text": "te,xt"} for row in range(50)])
    for name in ("a.csv", "a.jsonl"):
        plan = sk.open(tmp_path / name, decode="arrow").shuffle(1)._node.plan(np.arange(50))
        whole = table_of(plan.slice(0, 50))
        for start, stop in ((0, 3), (3, 6), (6, 7), (40, 50), (5, 9), (0, 50), (49, 50), (0, 0)):
            cut = table_of(plan.slice(0, 50).slice(start, stop))
            assert cut.equals(whole.slice(start, stop - start))
            assert cut.get_total_buffer_size() < whole.nbytes or len(cut) > 9
    rows[30] = '30,x,"'
    (tmp_path / "a.csv").write_text("\n".join(["id,text", *rows]))
    loader = iter(sk.Loader(sk.open(tmp_path / "a.csv", decode=form), batch_size=4))
    before = [next(loader)["id"] for _ in range(7)]
    assert [str(value) for batch in before for value in batch] == [str(row) for row in range(28)]
    with pytest.raises(sk.CorruptRecord) as found:
        next(loader)
    assert found.value.row == 30


def test_columns_resume_in_workers_and_from_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, [{"id": row, "text": f"é{row}"} for row in range(50)])
    plain = [batch["id"].tolist() for batch in sk.Loader(sk.open(path).shuffle(1), batch_size=7)]
    ds = sk.open(path, decode="arrow", columns=["text", "id"]).shuffle(1)
    ds.save(tmp_path / "pipeline.json")
    again = sk.load_pipeline(tmp_path / "pipeline.json")
    assert again.fingerprint == ds.fingerprint != sk.open(path, decode="arrow").shuffle(1).fingerprint
    sk.testing.assert_resumes_exactly(lambda: sk.Loader(again, batch_size=7))
    with sk.Loader(again, batch_size=7, workers=1) as loader:
        batches = list(loader)
    assert [batch.column("id").to_pylist() for batch in batches] == plain
    assert batches[0].schema.names == ["text", "id"]
