"""Token stores as they are read: every document, its source line, and no wrong one of a damaged store."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests import thrift
from tests.dataset.test_write_tokens import document, documents
from tests.tokens.store_options import gathered

import seekable as sk

if TYPE_CHECKING:
    from pathlib import Path


def plain(record: dict[str, Any]) -> dict[str, list[int]]:
    return {name: values.tolist() for name, values in record.items()}


def write(folder: Path, count: int = 30, **options: Any) -> None:
    rows = max(7, count // 4)
    documents(count).write_tokens(
        folder, jobs=1, **gathered(rows_per_file=rows, align=["loss_mask"], **options)
    )


@pytest.mark.parametrize("count", [0, 1, 1000])
@pytest.mark.parametrize("dtype", ["uint16", "uint32", "int32"])
def test_documents_come_back(count: int, dtype: str, tmp_path: Path) -> None:
    write(tmp_path / "o", count, dtype=dtype)
    tk = sk.open(tmp_path / "o")
    assert [plain(record) for record in tk] == [document(number) for number in range(count)]
    assert all(record["tokens"].dtype == dtype for record in tk)
    assert sk.formats.token_lengths(tk).tolist() == [number % 7 for number in range(count)]
    assert sk.open(str(tmp_path / "o") + "/").fingerprint == tk.fingerprint
    assert [plain(each) for each in tk._node.fetch(np.arange(count))] == [plain(each) for each in tk]


def test_a_store_with_an_index_of_megatron_is_still_a_store(tmp_path: Path) -> None:
    write(tmp_path, idx=True)
    assert list(sk.open(tmp_path)[5]) == ["tokens", "loss_mask"]
    assert len(sk.open(f"megatron:{tmp_path}/part-000001")) == 7
    (tmp_path / "part-000001.facts").rename(tmp_path / "part-000001.away")
    assert list(sk.open(f"megatron:{tmp_path}/part-000001")[0]) == ["tokens"]


def test_other_files_in_the_folder_are_no_documents(tmp_path: Path) -> None:
    write(tmp_path)
    for name in ("part-000099.bin", "readme.txt", "more.jsonl"):
        (tmp_path / name).write_bytes(b"{}\n")
    assert len(sk.open(tmp_path)) == 30


def test_a_store_that_is_not_finished_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "tokens.json").unlink()
    for source in (tmp_path, f"tokens:{tmp_path}", tmp_path / "part-000000.bin"):
        with pytest.raises(sk.DataNotFound, match=r"was not finished.*same call of sk\.tokenize"):
            sk.open(source)


@pytest.mark.parametrize("suffix", ["bin", "lengths", "sources", "loss_mask", "facts"])
def test_a_lost_file_is_named(suffix: str, tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / f"part-000002.{suffix}").unlink()
    with pytest.raises(sk.DataNotFound, match=rf"has no 'part-000002\.{suffix}'.*writes this part again"):
        sk.open(tmp_path)
    write(tmp_path)
    assert len(sk.open(tmp_path)) == 30


@pytest.mark.parametrize("suffix", ["bin", "lengths", "loss_mask", "facts"])
@pytest.mark.parametrize("is_open", [False, True])
def test_a_cut_file_is_named_with_its_byte(suffix: str, is_open: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a case
    write(tmp_path)
    if is_open:
        sk.open(tmp_path)
    path = tmp_path / f"part-000002.{suffix}"
    size = path.stat().st_size
    os.truncate(path, size - 1)
    place = 0 if suffix == "facts" else size - 1
    with pytest.raises(
        sk.CorruptRecord, match=rf"part-000002\.{suffix}.*byte {place}\b.*copy the store again"
    ):
        sk.open(tmp_path)


def test_swapped_parts_and_parts_of_another_store_are_refused(tmp_path: Path) -> None:
    for name, first in (("one", 0), ("two", 700)):
        ds = sk.from_sequence(range(first, first + 21), version="same").map(document)
        ds.write_tokens(
            tmp_path / name,
            jobs=1,
            store=sk.formats.TokenStore(rows_per_file=7, align=["loss_mask"], dtype="uint16"),
        )
    names = sorted(path.name for path in (tmp_path / "one").glob("part-000000.*"))
    for some in ([name] for name in names if not name.endswith("sources")):
        copied(tmp_path / "one", tmp_path / "mixed")
        for name in some:
            shutil.copy(tmp_path / "two" / name, tmp_path / "mixed" / name)
        if contents_differ(tmp_path / "one", tmp_path / "two", some):
            with pytest.raises(sk.CorruptRecord, match="part-000000"):
                sk.open(tmp_path / "mixed")
    copied(tmp_path / "one", tmp_path / "mixed")
    for name in names:
        other = name.replace("000000", "000001")
        shutil.copy(tmp_path / "one" / other, tmp_path / "mixed" / name)
        shutil.copy(tmp_path / "one" / name, tmp_path / "mixed" / other)
    with pytest.raises(sk.CorruptRecord, match="another part"):
        sk.open(tmp_path / "mixed")


def copied(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


def contents_differ(one: Path, two: Path, names: list[str]) -> bool:
    return any((one / name).read_bytes() != (two / name).read_bytes() for name in names)


@pytest.mark.parametrize("cases", [20, pytest.param(thrift.some(300), marks=pytest.mark.exhaustive)])
def test_no_damage_gives_wrong_tokens(cases: int, tmp_path: Path) -> None:
    write(tmp_path / "whole", 20)
    wanted = [plain(record) for record in sk.open(tmp_path / "whole")]
    shutil.rmtree(tmp_path / "whole" / ".seekable")
    names = sorted(path.name for path in (tmp_path / "whole").iterdir() if not path.name.startswith("."))
    draw = random.Random(3)
    for number in range(cases):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "whole", folder)
        name = draw.choice(names)
        data = bytearray((folder / name).read_bytes())
        kind = draw.randrange(3)
        if kind == 0 and data:
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del data[draw.randrange(len(data) + 1) :]
        else:
            data += draw.randbytes(draw.randrange(1, 9))
        (folder / name).write_bytes(data)
        try:
            found = [plain(record) for record in sk.open(folder)]
        except sk.SeekableError:
            continue
        assert found == wanted, (name, kind)


def test_options_that_contradict_a_store_are_refused(tmp_path: Path) -> None:
    write(tmp_path, dtype="uint16")
    assert len(sk.open(tmp_path, format=sk.formats.Tokens(dtype="uint16"))) == 30
    with pytest.raises(sk.errors.InvalidArgument, match="contradicts"):
        sk.open(tmp_path, format=sk.formats.Tokens(dtype="uint32"))
    with pytest.raises(sk.errors.InvalidArgument, match="leave out eos=0"):
        sk.open(tmp_path, format=sk.formats.Tokens(eos=0))


def test_a_document_of_another_version_is_refused(tmp_path: Path) -> None:
    write(tmp_path)
    document_path = tmp_path / "tokens.json"
    described = json.loads(document_path.read_text())
    document_path.write_text(json.dumps({**described, "seekable_tokens": 2}))
    with pytest.raises(sk.errors.CorruptState, match=r"has version 2, and this seekable reads version 1"):
        sk.open(tmp_path)
    document_path.write_text("{")
    with pytest.raises(sk.errors.CorruptState, match="repeat the call that wrote the store"):
        sk.open(tmp_path)
    document_path.unlink()
    write(tmp_path)
    assert len(sk.open(tmp_path)) == 30


def lines(folder: Path, counts: dict[str, int]) -> sk.Dataset:
    folder.mkdir()
    for name, count in counts.items():
        rows = ({"tokens": [place] * (place % 4), "from": name} for place in range(count))
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return sk.open(folder)


def line_at(where: sk.Location) -> Any:
    with open(where.path, "rb") as file:
        file.seek(where.offset)
        return json.loads(file.read(where.length))


def test_documents_lead_to_their_lines(tmp_path: Path) -> None:
    corpus = lines(tmp_path / "corpus", {"a": 9, "b": 0, "c": 12})
    chosen = corpus.filter(lambda record: len(record["tokens"]) != 2, version=1).shuffle(seed=3)
    holed = chosen.map(
        lambda record: sk.HOLE if record["from"] == "a" and record["tokens"] == [5] else record
    )
    for number, ds in enumerate((corpus, chosen, holed)):
        folder = tmp_path / str(number)
        ds.write_tokens(folder, jobs=1, store=sk.formats.TokenStore(rows_per_file=4, dtype="uint16"))
        tk = sk.open(folder)
        wanted = [record for record in ds if record is not sk.HOLE]
        assert len(tk) == len(wanted)
        for row, record in enumerate(wanted):
            where = tk.locate(row)
            assert where.source is not None
            assert line_at(where.source) == record
            assert where.source == corpus.locate(where.source.row + (9 if record["from"] == "c" else 0))
    for place in range(3):
        packed = tk.pack(4, seed=1)
        for piece in packed.locate(place):
            ids = np.fromfile(piece.path, "uint16", piece.length // 2, offset=piece.offset)
            assert set(ids.tolist()) <= set(line_at(piece.source)["tokens"])


def test_rows_without_an_index_and_documents_without_a_row(tmp_path: Path) -> None:
    corpus = lines(tmp_path / "corpus", {"a": 5})
    corpus.write_tokens(tmp_path / "out", jobs=1)
    tk = sk.open(tmp_path / "out")
    assert tk.locate(3).source == corpus.locate(3)
    pairs = sk.zip([corpus, corpus]).map(lambda pair: {"tokens": [len(pair)]}, version=1)
    pairs.write_tokens(tmp_path / "pairs", jobs=1)
    assert sk.open(tmp_path / "pairs").locate(0).source is None
    documents(2).write_tokens(tmp_path / "memory", jobs=1)
    assert sk.open(tmp_path / "memory").locate(1).source == sk.Location("<builtins.range documents>", 1, 0, 0)
    corpus.stream(epochs=1).write_tokens(tmp_path / "stream", jobs=1)
    assert sk.open(tmp_path / "stream").locate(0).source is None
    shutil.rmtree(tmp_path / "corpus" / ".seekable")
    (tmp_path / "corpus" / "a.jsonl").write_text("{}\n")
    assert tk.locate(3).source == sk.Location(str(tmp_path / "corpus" / "a.jsonl"), 3, 0, 0)


def test_damaged_rows_of_sources_are_an_error(tmp_path: Path) -> None:
    write(tmp_path)
    tk = sk.open(tmp_path)
    assert tk.locate(8).source is not None
    (tmp_path / "part-000001.sources").write_bytes(bytes(16))
    with pytest.raises(sk.CorruptRecord, match=r"part-000001\.sources.*byte 0"):
        tk.locate(8)


def test_other_locations_are_as_they_were() -> None:
    where = sk.Location("/a", 1, 2, 3)
    assert repr(where) == "Location(path='/a', row=1, offset=2, length=3)"
    assert where == sk.Location("/a", row=1, offset=2, length=3, source=None)
    assert pickle.loads(pickle.dumps(where)) == where
    inner = sk.Location("/b", 1, 2, 3, source=where)
    assert inner != sk.Location("/b", 1, 2, 3)
    assert repr(inner) == f"Location(path='/b', row=1, offset=2, length=3, source={where!r})"
    assert len({where, inner, sk.Location("/a", 1, 2, 3)}) == 2


def test_a_store_below_a_corpus_is_no_data_of_it(tmp_path: Path) -> None:
    corpus = lines(tmp_path / "corpus", {"a": 5})
    corpus.write_tokens(tmp_path / "corpus" / "tokens", jobs=1)
    assert len(sk.open(tmp_path / "corpus")) == 5
    assert len(sk.open(tmp_path / "corpus" / "tokens")) == 5
