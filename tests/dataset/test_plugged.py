"""Methods whose code the core does not know: their arguments are the same on both sides, and so are files."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Self

import numpy as np
import pytest

import seekable as sk
from seekable.formats.file_format import FileFormat
from seekable.formats.table import CARDS, plugged, writer
from seekable.writing.write_methods import WriteMethods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from seekable.formats.file_format import Preview

WRITTEN = [card.name for card in CARDS if card.writer]


def arguments(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters but the first, with the texts of their types."""
    return list(inspect.signature(function).parameters.values())[1:]


@pytest.mark.parametrize("name", ["pack", "windows"])
def test_a_method_has_the_arguments_of_the_code_it_leads_to(name: str) -> None:
    assert arguments(getattr(sk.Dataset, name)) == arguments(getattr(plugged("packing"), name))


@pytest.mark.parametrize("name", WRITTEN)
def test_a_method_that_writes_has_the_options_of_its_format(name: str) -> None:
    common = inspect.signature(WriteMethods.write).parameters
    own = [each for each in arguments(getattr(WriteMethods, f"write_{name}")) if each.name not in common]
    assert own == list(inspect.signature(writer(name)).parameters.values())


@pytest.mark.parametrize("name", WRITTEN)
def test_methods_that_write_have_the_same_arguments_for_all_formats(name: str) -> None:
    common = inspect.signature(WriteMethods.write).parameters
    theirs = [each for each in arguments(getattr(WriteMethods, f"write_{name}")) if each.name in common]
    left_out = {"format", "rows_per_file"} if name in ("shar", "tokens") else {"format"}
    assert theirs == [each for each in arguments(WriteMethods.write) if each.name not in left_out]


def records() -> sk.Dataset:
    rows = [{"__key__": f"{number:02}", "tokens": [number] * (number % 3)} for number in range(7)]
    return sk.from_sequence(rows)


def tagged(record: dict[str, Any]) -> dict[str, Any]:
    return {"__key__": record["__key__"], "txt": str(len(record["tokens"]))}


def made(kind: str, name: str) -> sk.Dataset | sk.Stream:
    ds = records() if name != "tar" else records().map(tagged)
    return ds if kind == "dataset" else ds.stream(epochs=1, lanes=2)


def contents(folder: Path) -> dict[str, bytes]:
    found = [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]
    return {path.name: path.read_bytes() for path in found}


@pytest.mark.parametrize("kind", ["dataset", "stream"])
@pytest.mark.parametrize("name", sorted({*WRITTEN} - {"shar"}))
def test_a_format_is_named_or_has_a_method(name: str, kind: str, tmp_path: Path) -> None:
    named = made(kind, name).write(tmp_path / "named", name, rows_per_file=3, jobs=1)
    size = {"store": sk.formats.TokenStore(rows_per_file=3)} if name == "tokens" else {"rows_per_file": 3}
    by_method = getattr(made(kind, name), f"write_{name}")(tmp_path / "method", **size, jobs=1)
    assert contents(tmp_path / "named") == contents(tmp_path / "method")
    assert (named.rows, named.bytes) == (by_method.rows, by_method.bytes) == (7, named.bytes)
    assert len(named.paths) == 3


class Numbers(FileFormat):
    """A format of one's own: a number a line; it has only what a format must have."""

    name: ClassVar[str] = "numbers"
    way_out = "make it a number first"
    suffix = ".num"
    options: ClassVar[dict[str, Any]] = {}

    def of_one_file(self, name: str) -> Self:
        return self

    def settled(self, preview: Preview, kept: str | None) -> tuple[FileFormat, str | None]:
        return self, None

    def write(
        self, file: BinaryIO, chunks: Iterator[Any], *, first: int, beside: Sequence[BinaryIO] = ()
    ) -> None:
        self.write_piece(file, chunks)

    def write_piece(self, file: BinaryIO, chunks: Iterator[Any]) -> None:
        file.writelines("".join(f"{number}\n" for number in some).encode() for some in chunks)

    def merged(self, pieces: Sequence[str], turns: Iterable[NDArray[np.intp]]) -> Iterator[Any]:
        lines = []
        for path in pieces:
            with open(path) as file:
                lines.append(iter(file.read().split()))
        for turn in turns:
            yield [next(lines[number]) for number in turn.tolist()]

    def rows_in(self, path: str, *, beside: Sequence[str] = ()) -> int | None:
        return None


@pytest.mark.parametrize("lanes", [0, 1, 3])
def test_a_format_of_ones_own_is_written(lanes: int, tmp_path: Path) -> None:
    ds = sk.from_sequence(range(10))
    source = ds.stream(epochs=1, lanes=lanes) if lanes else ds
    written = source.write(tmp_path / "out", Numbers(), rows_per_file=4, jobs=1)
    found = contents(tmp_path / "out")
    assert b"".join(found[name] for name in sorted(found)).split() == [b"%d" % number for number in range(10)]
    assert (written.rows, len(written.paths)) == (10, 3)
    assert source.write(tmp_path / "out", Numbers(), rows_per_file=4, jobs=1).kept == 3


def test_shards_have_the_size_of_their_format(tmp_path: Path) -> None:
    rows = [{"id": f"cut-{number}", "recording": {"data": (np.zeros(8), 8000)}} for number in range(5)]
    form = writer("shar")({"recording": "wav"}, shard_size=2)
    cuts = sk.from_sequence(rows)
    assert len(cuts.write(tmp_path / "own", form, jobs=1).paths) == 3
    assert len(cuts.write(tmp_path / "given", form, rows_per_file=5, jobs=1).paths) == 1
    store = sk.formats.Tokens.writer(store=sk.formats.TokenStore(rows_per_file=3))
    assert len(records().write(tmp_path / "store", store, jobs=1).paths) == 3


def test_what_is_no_format_is_refused(tmp_path: Path) -> None:
    ds = records()
    with pytest.raises(sk.errors.InvalidArgument, match=r"one of 'jsonl', 'parquet', .*got 'orc'"):
        ds.write(tmp_path, "orc")
    with pytest.raises(sk.errors.WrongType, match="name of a format"):
        ds.write(tmp_path, None)  # type: ignore[arg-type]
    with pytest.raises(sk.errors.InvalidArgument, match=re.escape("call write_shar(folder, fields=")):
        ds.write(tmp_path, "shar")
    with pytest.raises(sk.errors.EndlessDataset, match=r"write_jsonl\(\) needs a length"):
        sk.mix([ds, ds], seed=0, stop="never").write(tmp_path, "jsonl")
    with pytest.raises(sk.errors.EndlessDataset, match=r"write_jsonl\(\) needs a stream that ends"):
        ds.stream().write(tmp_path, "jsonl")


def test_a_format_as_a_value_writes_with_its_options(tmp_path: Path) -> None:
    ds = sk.from_sequence([{"id": row} for row in range(5)])
    ds.write(tmp_path / "lines", sk.formats.Jsonl.writer(compression="gz"))
    ds.write(tmp_path / "table", sk.formats.Tables.writer(row_group_rows=2))
    assert [path.name for path in (tmp_path / "lines").glob("*.gz")]
    for name in ("lines", "table"):
        assert list(sk.open(tmp_path / name)) == list(ds)
    with pytest.raises(sk.errors.InvalidArgument, match="text is read and not written"):
        sk.formats.Text.writer()
