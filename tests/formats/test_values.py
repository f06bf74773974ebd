"""Values that Python has none for, and values that do not fit the type that a column has in other files."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc
from tests.thrift import sample

import seekable as sk
from seekable.errors import CorruptRecord

if TYPE_CHECKING:
    from pathlib import Path

ROWS, BAD = 30, 17

LATE = 4_000_000
"""Days: a date of the year 12921."""


def column(good: Any, bad: Any, kind: pa.DataType, base: pa.DataType) -> pa.Array:
    """Return a column with one value that Python has none for, made of numbers of a plain type."""
    values = pa.array([bad if row == BAD else good for row in range(ROWS)], base)
    return values.cast(kind) if pa.types.is_list(kind) else values.view(kind)


BEYOND = {
    "a date of the year 12921": column(3, LATE, pa.date32(), pa.int32()),
    "a date before the year 1": column(3, -LATE, pa.date32(), pa.int32()),
    "a timestamp": column(3, 2**62, pa.timestamp("ms"), pa.int64()),
    "a timestamp of a time zone": column(3, 10**18, pa.timestamp("us", "Europe/Berlin"), pa.int64()),
    "a duration": column(3, 2**62, pa.duration("s"), pa.int64()),
    "a time of day with nanoseconds": column(1000, 1001, pa.time64("ns"), pa.int64()),
    "a date within a list": column([3], [LATE], pa.list_(pa.date32()), pa.list_(pa.int32())),
}


def written(folder: Path, suffix: str, made: pa.Array) -> Path:
    path = folder / f"a.{suffix}"
    table = pa.table({"id": range(ROWS), "when": made})
    if suffix == "parquet":
        pq.write_table(table, path, store_schema=True)
    else:
        with ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    return path


@pytest.mark.parametrize(("name", "suffix"), sample(itertools.product(BEYOND, ["arrow", "parquet"]), of=2))
def test_a_value_that_python_has_none_for(tmp_path: Path, name: str, suffix: str) -> None:
    path = written(tmp_path, suffix, BEYOND[name])
    dataset = sk.open(path, index=sk.Index(jobs=1))
    there = rf"a\.{suffix}: row {BAD}, column 'when'.*decode=\"arrow\""
    for rows in (BAD, [BAD], [3, BAD], list(range(ROWS)), np.random.default_rng(0).permutation(ROWS)):
        with pytest.raises(sk.errors.BadValue, match=there):
            _ = dataset[rows]
    with pytest.raises(sk.errors.BadValue, match=there):
        list(dataset)
    assert [record["id"] for record in dataset[:BAD]] == list(range(BAD))
    assert dataset[BAD + 1]["id"] == BAD + 1
    # The ways out.
    assert sk.open(path, columns=["id"], index=sk.Index(jobs=1))[BAD] == {"id": BAD}
    assert sk.open(path, decode="arrow", index=sk.Index(jobs=1))[BAD]["when"].equals(
        BEYOND[name].slice(BAD, 1)
    )
    told: list[CorruptRecord] = []

    def note(error: CorruptRecord) -> Any:
        told.append(error)
        return sk.HOLE

    held = sk.open(path, errors=note, index=sk.Index(jobs=1))
    assert [row for row, record in enumerate(held) if record is sk.HOLE] == [BAD]
    assert isinstance(told[0], CorruptRecord)
    assert (told[0].row, type(told[0].cause)) == (BAD, sk.errors.BadValue)


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
@pytest.mark.parametrize("name", ["a time of day with nanoseconds", "a date within a list"])
def test_a_value_that_numpy_has_none_for(tmp_path: Path, name: str, suffix: str) -> None:
    dataset = sk.open(written(tmp_path, suffix, BEYOND[name]), decode="numpy", index=sk.Index(jobs=1))
    there = rf"a\.{suffix}: row {BAD}, column 'when'"
    for rows in (BAD, [3, BAD]):
        with pytest.raises(sk.errors.BadValue, match=there):
            _ = dataset[rows]
    with pytest.raises(sk.errors.BadValue, match=there):
        list(dataset.batches("numpy", size=4))
    with pytest.raises(sk.errors.BadValue, match=there):
        list(dataset.shuffle(seed=1).batches("numpy", size=7))
    assert dataset[BAD - 1]["id"] == BAD - 1


NO_PANDAS = """
import sys
class Without:
    def find_spec(self, name, *others):
        if name.partition(".")[0] == "pandas":
            raise ImportError(name)
sys.meta_path.insert(0, Without())
import seekable as sk
for path in sys.argv[1:]:
    for row in (0, 1):
        try:
            print(sk.open(path, index=sk.Index(jobs=1))[row])
        except sk.errors.BadValue as error:
            print(error)
"""


def test_nanoseconds_without_pandas(tmp_path: Path) -> None:
    """With pandas pyarrow makes its timestamps of them; Python's own have none."""
    kinds = {"a": pa.timestamp("ns"), "b": pa.duration("ns"), "c": pa.list_(pa.timestamp("ns"))}
    paths = [str(tmp_path / f"{name}.arrow") for name in kinds]
    for path, kind in zip(paths, kinds.values(), strict=True):
        numbers = pa.array([[1000], [1001]] if pa.types.is_list(kind) else [1000, 1001])
        table = pa.table({"when": numbers.cast(kind)})
        with ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    command = [sys.executable, "-c", NO_PANDAS, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = done.stdout.splitlines()
    for name, good, bad in zip(kinds, told[::2], told[1::2], strict=True):
        assert good.startswith("{'when'")
        assert f"{name}.arrow: row 1, column 'when'" in bad
        assert 'decode="arrow"' in bad


def two(folder: Path, first: pa.Array, second: pa.Array) -> tuple[Path, Path]:
    paths = folder / "a.parquet", folder / "b.parquet"
    for path, made in zip(paths, (first, second), strict=True):
        pq.write_table(pa.table({"n": made}), path)
    return paths


def test_a_value_that_does_not_fit_the_type_of_another_file(tmp_path: Path) -> None:
    two(tmp_path, pa.array([0.5]), pa.array([1, 2**53 + 1, 3]))
    dataset = sk.open(tmp_path, index=sk.Index(jobs=1))
    message = (
        r"b\.parquet: row 1, column 'n': the type is int64 here and double in .*a\.parquet.*does not fit "
        r"double.*sk\.concat\(\[a, b\.cast\("
    )
    for rows in (2, [2], [0, 2, 3], [0, 1, 2, 3]):
        with pytest.raises(sk.errors.BadValue, match=message) as caught:
            _ = dataset[rows]
        assert not isinstance(caught.value, CorruptRecord)
        assert "cannot be decoded" not in str(caught.value)
    with pytest.raises(sk.errors.BadValue, match=message):
        dataset.to_arrow()
    assert [dataset[row]["n"] for row in (0, 1, 3)] == [0.5, 1.0, 3.0]
    holes = sk.open(tmp_path, errors=lambda _: sk.HOLE, index=sk.Index(jobs=1))
    assert [record is sk.HOLE for record in holes] == [False, False, True, False]


def test_files_whose_types_have_none_in_common_name_both_and_the_way_out(tmp_path: Path) -> None:
    first, second = two(tmp_path, pa.array(["x"]), pa.array([1]))
    with pytest.raises(
        sk.errors.UnsupportedFormat, match=r"a\.parquet.*b\.parquet.*'n' is int64 and not string.*cast"
    ):
        sk.open(tmp_path, index=sk.Index(jobs=1))
    both = sk.concat([sk.open(first, index=sk.Index(jobs=1)), sk.open(second, index=sk.Index(jobs=1))])
    assert [record["n"] for record in both] == ["x", 1]
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"'n' is string in .*a\.parquet and int64 in .*b\.parquet.*ds\.cast"
    ):
        both.to_arrow()


def test_a_record_of_errors_that_does_not_fit_the_columns(tmp_path: Path) -> None:
    two(tmp_path, pa.array([0.5]), pa.array([2**53 + 1]))
    dataset = sk.open(tmp_path, errors=lambda _: {"n": "many"}, index=sk.Index(jobs=1))
    assert dataset[1] == {"n": "many"}
    with pytest.raises(sk.errors.InvalidArgument, match=r"errors= returned \{'n': 'many'\}"):
        dataset.to_arrow()


def test_numbers_that_arrow_has_no_type_for() -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="no common Arrow type"):
        sk.from_sequence([{"n": 2**70}]).to_arrow()
