"""Datasets as token stores: the bytes of each file, the same whoever writes them, also after kills."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.killing import KILLED, Killer, one_of_each_kind
from tests.thrift import wider
from tests.tokens.store_options import gathered

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seekable.writing.manifest import Written


def document(number: int) -> dict[str, Any]:
    """Return a document of none to six ids, with a mask."""
    count = number % 7
    return {"tokens": [number + place for place in range(count)], "loss_mask": [1] * count}


def documents(count: int) -> sk.Dataset:
    return sk.from_sequence(range(count), version="documents").map(document)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def store(folder: Path) -> Any:
    return json.loads((folder / "tokens.json").read_text())


def ids_of(folder: Path, dtype: str = "uint16") -> list[list[int]]:
    """Return the ids of all documents, read by numpy alone."""
    found = []
    for part in sorted(folder.glob("part-*.bin")):
        ids, lengths = np.fromfile(part, dtype), np.fromfile(part.with_suffix(".lengths"), "<u4")
        assert lengths.sum() == len(ids)
        found += [each.tolist() for each in np.split(ids, np.cumsum(lengths)[:-1])] if len(lengths) else []
    return found


def test_the_bytes_of_each_file(tmp_path: Path) -> None:
    records = [
        {"tokens": [5, 6, 7], "loss_mask": [0, 1, 1]},
        {"tokens": [], "loss_mask": []},
        {"tokens": [9], "loss_mask": [1]},
    ]
    folder = tmp_path / "tokens"
    written = sk.from_sequence(records, version=1).write_tokens(
        folder, eos=2, store=sk.formats.TokenStore(align=["loss_mask"], idx=True, rows_per_file=2)
    )
    found = contents(folder)
    parts = ("bin", "facts", "idx", "lengths", "loss_mask", "sources")
    assert sorted(found) == [f"part-00000{number}.{each}" for number in (0, 1) for each in parts] + [
        "tokens.json"
    ]
    assert found["part-000000.bin"] == bytes.fromhex("0500 0600 0700 0200 0200")
    assert found["part-000000.lengths"] == bytes.fromhex("04000000 01000000")
    assert found["part-000000.loss_mask"] == bytes([0, 1, 1, 1, 1])
    assert found["part-000000.sources"] == bytes.fromhex("00000000 02000000 0000000000000000")
    assert found["part-000001.sources"] == bytes.fromhex("00000000 01000000 0200000000000000")
    assert found["part-000000.idx"] == bytes.fromhex(
        "4d4d49444944580000 0100000000000000 08 0200000000000000 0300000000000000"
        "04000000 01000000 0000000000000000 0800000000000000"
        "0000000000000000 0100000000000000 0200000000000000"
    )
    assert (written.rows, [os.path.basename(path) for path in written.paths]) == (
        3,
        ["part-000000.bin", "part-000001.bin"],
    )
    described = store(folder)
    del described["parts"]
    fingerprint = sk.from_sequence(records, version=1).fingerprint
    assert described == {
        "seekable_tokens": 1,
        "dtype": "uint16",
        "documents": 3,
        "tokens": 7,
        "trained": 6,
        "empty": 1,
        "vocabulary": None,
        "eos": 2,
        "bos": None,
        "column": "tokens",
        "aligned": {"loss_mask": "uint8"},
        "tokenizer": None,
        "source": {"fingerprint": fingerprint, "rows": 3, "files": ["<builtins.list 1>"]},
    }


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_none_one_and_many_documents(count: int, tmp_path: Path) -> None:
    written = documents(count).write_tokens(tmp_path, jobs=1, store=sk.formats.TokenStore(rows_per_file=300))
    assert ids_of(tmp_path) == [document(number)["tokens"] for number in range(count)]
    facts = store(tmp_path)
    assert (written.rows, facts["documents"]) == (count, count)
    assert facts["tokens"] == sum(number % 7 for number in range(count))
    assert facts["empty"] == -(-count // 7)
    assert written.bytes == sum(
        len(data) for name, data in contents(tmp_path).items() if name != "tokens.json"
    )
    again = documents(count).write_tokens(tmp_path, jobs=1, store=sk.formats.TokenStore(rows_per_file=300))
    assert again.kept == len(written.paths) == max(1, -(-count // 300))


@pytest.mark.parametrize(
    ("ids", "asked", "dtype"),
    [
        ([65_535], None, "uint16"),
        ([65_536], None, "uint32"),
        ([70_000], None, "uint32"),
        ([1], "uint32", "uint32"),
        ([1], "int32", "int32"),
        ([2**32 - 1], None, "uint32"),
        (np.array([3], "uint8"), None, "uint16"),
        (np.array([70_000], ">i8"), None, "uint32"),
    ],
)
def test_dtypes(ids: Any, asked: str | None, dtype: str, tmp_path: Path) -> None:
    sk.from_sequence([{"tokens": ids}]).write_tokens(tmp_path, store=sk.formats.TokenStore(dtype=asked))
    assert ids_of(tmp_path, dtype) == [list(ids)]
    assert store(tmp_path)["dtype"] == dtype
    mapped = np.memmap(tmp_path / "part-000000.bin", dtype, "r")
    assert mapped.tolist() == list(ids)


def test_the_dtype_of_many_ids_is_never_too_small(tmp_path: Path) -> None:
    lists = sk.from_sequence(range(1025), version=1).map(lambda number: {"tokens": [number]}, version=1)
    lists.write_tokens(tmp_path / "lists", jobs=1)
    assert store(tmp_path / "lists")["dtype"] == "uint32"
    arrays = sk.from_sequence(range(1025), version=1).map(
        lambda n: {"tokens": np.array([n], "u2")}, version=2
    )
    arrays.write_tokens(tmp_path / "arrays", jobs=1)
    assert store(tmp_path / "arrays")["dtype"] == "uint16"


@pytest.mark.parametrize(("largest", "dtype"), [(65_498, "uint16"), (65_499, "int32"), (70_000, "int32")])
def test_dtypes_with_an_index_are_those_of_megatron(largest: int, dtype: str, tmp_path: Path) -> None:
    sk.from_sequence([{"tokens": [largest]}]).write_tokens(tmp_path, store=sk.formats.TokenStore(idx=True))
    assert ids_of(tmp_path, dtype) == [[largest]]
    assert (tmp_path / "part-000000.idx").read_bytes()[17] == {"uint16": 8, "int32": 4}[dtype]


@pytest.mark.parametrize(
    ("values", "asked", "dtype"),
    [
        ([0, 1], (), "uint8"),
        ([0, -3], (), "int32"),
        ([0, 1 << 40], (), "int64"),
        ([0.5, 1.0], (), "float32"),
        ([True, False], (), "bool"),
        (np.array([1, 2], "float16"), (), "float16"),
        (np.array([1, 2], ">f8"), (), "float64"),
        ([0, 1], {"weight": "float32"}, "float32"),
        ([0, 300], {"weight": np.uint16}, "uint16"),
    ],
)
def test_dtypes_of_arrays_beside(values: Any, asked: Any, dtype: str, tmp_path: Path) -> None:
    sk.from_sequence([{"tokens": [5, 6], "weight": values}]).write_tokens(
        tmp_path, store=sk.formats.TokenStore(align=asked or ["weight"])
    )
    found = np.fromfile(tmp_path / "part-000000.weight", dtype)
    assert found.tolist() == list(values)
    assert store(tmp_path)["aligned"] == {"weight": dtype}


@pytest.mark.parametrize(
    ("record", "arguments", "says"),
    [
        ({"tokens": [70_000]}, {"dtype": "uint16"}, r"row 3 .* as tokens: token 0 of it has the id 70000"),
        ({"tokens": [-1]}, {}, r"token 0 of it has the id -1"),
        ({"tokens": [[1, 2]]}, {}, "no flat list of integers"),
        ({"tokens": [1.5]}, {}, "no flat list of integers"),
        ({"tokens": "text"}, {}, "no flat list of integers"),
        ({"ids": [1]}, {}, "has no column 'tokens'"),
        ({"tokens": None}, {}, "no flat list of integers"),
        ({"tokens": 5}, {}, "no flat list of integers"),
        ({"tokens": np.array(5)}, {}, "no flat list of integers"),
        (5, {}, "must be a dict with the column 'tokens'"),
        ([1], {"align": ["m"]}, "must be a dict with the column 'm'"),
        ({"tokens": [1, 2], "m": [1]}, {"align": ["m"]}, "'m' has shape"),
        ({"tokens": [1], "m": ["x"]}, {"align": ["m"]}, "number a token"),
        ({"tokens": [1], "m": [300]}, {"align": {"m": "uint8"}}, "'m' has the value 300"),
    ],
)
def test_a_record_that_is_no_document_is_named(
    record: Any, arguments: dict[str, Any], says: str, tmp_path: Path
) -> None:
    good = {"tokens": [1], "m": [1]}
    ds = sk.from_sequence([good, good, good, record])
    with pytest.raises(sk.errors.WrongType, match=says):
        ds.write_tokens(tmp_path, jobs=1, **gathered(**arguments))
    assert not (tmp_path / "tokens.json").exists()


def test_records_that_are_ids_themselves(tmp_path: Path) -> None:
    ds = sk.from_sequence([[1, 2], np.array([3]), {"tokens": [4]}])
    ds.write_tokens(tmp_path, eos=0)
    assert [each["tokens"].tolist() for each in sk.open(tmp_path)] == [[1, 2, 0], [3, 0], [4, 0]]


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"dtype": "float32"}, sk.errors.InvalidArgument, "dtype must be one of"),
        ({"dtype": "uint32", "idx": True}, sk.errors.InvalidArgument, "Megatron's index has no uint32"),
        ({"idx": 1}, sk.errors.WrongType, "idx must be True or False"),
        ({"align": "loss_mask"}, sk.errors.WrongType, "align must be a list of names"),
        ({"align": ["a", "a"]}, sk.errors.InvalidArgument, "twice"),
        ({"align": ["tokens"]}, sk.errors.InvalidArgument, "'tokens'"),
        ({"align": ["idx"]}, sk.errors.InvalidArgument, "cannot be named 'idx'"),
        ({"align": ["a/b"]}, sk.errors.InvalidArgument, "identifier"),
        ({"align": {"a": "str"}}, sk.errors.InvalidArgument, "dtype of numbers"),
        ({"align": {"a": "no dtype"}}, sk.errors.WrongType, "must be a dtype"),
        ({"align": {"a": sk.LossMask()}}, sk.errors.InvalidArgument, "arrays of typed parts"),
        ({"sample_size": 5}, sk.errors.InvalidArgument, r"TokenStore\(sample_size=\) is for sk.tokenize"),
        ({"parts": len}, sk.errors.InvalidArgument, r"TokenStore\(parts=\) is for sk.tokenize"),
        ({"aux": {}}, sk.errors.InvalidArgument, r"write store=sk.formats.TokenStore\(align=...\)"),
        ({"store": 5}, sk.errors.WrongType, "store must be a sk.formats.TokenStore"),
        ({"engine": "hf"}, sk.errors.InvalidArgument, "engine= is for texts"),
        ({"eos": "<end>"}, sk.errors.InvalidArgument, "give its id"),
        (
            {"tokenizer": len, "align": ["a"]},
            sk.errors.InvalidArgument,
            "align= names columns beside ids",
        ),
        ({"folder": "out.bin"}, sk.errors.InvalidArgument, "a token store has several files"),
        ({"folder": "out.tar"}, sk.errors.InvalidArgument, "a token store has several files"),
        ({"rows_per_file": 0}, sk.errors.InvalidArgument, "rows_per_file must be at least 1"),
    ],
)
def test_arguments_are_checked(
    arguments: dict[str, Any], kind: type[Exception], says: str, tmp_path: Path
) -> None:
    given = {"folder": "out", **arguments}
    folder = tmp_path / given.pop("folder")
    with pytest.raises(kind, match=says):
        documents(3).write_tokens(folder, **gathered(**given))
    assert not list(tmp_path.iterdir())


def test_another_call_is_refused_unless_it_may_go(tmp_path: Path) -> None:
    documents(9).write_tokens(tmp_path, store=sk.formats.TokenStore(rows_per_file=3))
    with pytest.raises(sk.StateMismatch, match="eos was None, is 0"):
        documents(9).write_tokens(tmp_path, eos=0, store=sk.formats.TokenStore(rows_per_file=3))
    with pytest.raises(sk.StateMismatch, match=r"(?s)was .* of 9 records, is .* of 10 records.*concat"):
        documents(10).write_tokens(tmp_path, store=sk.formats.TokenStore(rows_per_file=3))
    with pytest.raises(sk.StateMismatch, match="the format was tokens, is jsonl"):
        documents(9).map(str).write_jsonl(tmp_path)
    documents(5).write_tokens(tmp_path, overwrite=True, store=sk.formats.TokenStore(rows_per_file=5))
    assert {name.split(".")[0] for name in contents(tmp_path)} == {"part-000000", "tokens"}
    documents(5).map(lambda record: {"n": len(record["tokens"])}, version=1).write_jsonl(
        tmp_path, overwrite=True
    )
    assert list(contents(tmp_path)) == ["part-00000-of-00001.jsonl"]


def test_files_of_tokens_that_another_wrote_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "part-000000.bin").write_bytes(b"precious")
    with pytest.raises(sk.errors.InvalidArgument, match=r"'part-000000\.bin'"):
        documents(3).write_tokens(tmp_path)
    assert contents(tmp_path) == {"part-000000.bin": b"precious"}


def sources(folder: Path) -> list[tuple[str | None, int]]:
    """Return the file and the row that each document comes from."""
    files = store(folder)["source"]["files"]
    found: list[tuple[str | None, int]] = []
    for part in sorted(folder.glob("part-*.sources")):
        for file, count, row in np.fromfile(
            part, [("file", "<u4"), ("count", "<u4"), ("row", "<u8")]
        ).tolist():
            name = None if file == 2**32 - 1 else os.path.basename(files[file])
            found += [(name, row + place if name else 0) for place in range(count)]
    return found


def test_the_rows_that_documents_come_from(tmp_path: Path) -> None:
    for name, count in (("a", 5), ("b", 0), ("c", 7)):
        lines = "".join(f'{{"tokens": [{place}]}}\n' for place in range(count))
        (tmp_path / f"{name}.jsonl").write_text(lines)
    corpus = sk.open(tmp_path)
    places = [("a.jsonl", row) for row in range(5)] + [("c.jsonl", row) for row in range(7)]
    cases: dict[str, tuple[sk.Dataset, list[Any]]] = {
        "natural": (corpus, places),
        "shuffled": (corpus.shuffle(seed=3), [places[row] for row in order(corpus.shuffle(seed=3))]),
        "filtered": (
            corpus.filter(lambda each: each["tokens"][0] % 2 == 0, version=1),
            places[0:5:2] + places[5::2],
        ),
        "holes": (
            corpus.map(lambda each: sk.HOLE if each["tokens"] == [3] else each, version=1),
            [place for place in places if place[1] != 3],
        ),
        "zipped": (
            sk.zip([corpus, corpus]).map(lambda pair: pair[0], version=1),
            [(None, 0)] * 12,
        ),
    }
    for name, (ds, wanted) in cases.items():
        folder = tmp_path / "out" / name
        ds.write_tokens(folder, jobs=1, store=sk.formats.TokenStore(rows_per_file=4))
        assert sources(folder) == wanted, name
    natural = tmp_path / "out" / "natural"
    assert [path.stat().st_size for path in sorted(natural.glob("*.sources"))] == [16, 32, 16]


def order(ds: sk.Dataset) -> list[int]:
    """Return the number of each record of a corpus of two files, counted on from the first to the second."""
    return [
        where.row + (5 if where.path.endswith("c.jsonl") else 0) for where in map(ds.locate, range(len(ds)))
    ]


def test_texts_become_tokens(tmp_path: Path) -> None:
    ds = sk.from_sequence([{"text": "ab"}, {"text": ""}, {"text": "c"}])
    ds.write_tokens(tmp_path, tokenizer=characters, eos=0, store=sk.formats.TokenStore(bos=1, dtype="uint16"))
    assert ids_of(tmp_path) == [[1, 97, 98, 0], [1, 0], [1, 99, 0]]
    facts = store(tmp_path)
    assert (facts["empty"], facts["column"], facts["tokenizer"]["engine"]) == (1, "text", "function")
    with pytest.raises(sk.StateMismatch, match="tokenizer was"):
        ds.write_tokens(
            tmp_path, tokenizer=other_characters, eos=0, store=sk.formats.TokenStore(bos=1, dtype="uint16")
        )


def characters(text: str) -> list[int]:
    return [ord(each) for each in text]


def other_characters(text: str) -> list[int]:
    return [ord(each) + 1 for each in text]


def test_the_file_of_a_tokenizer_is_kept_beside(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"good": 0, "day": 1, "?": 2}, unk_token="?")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "own.json"))
    ds = sk.from_sequence([{"text": "good day"}, {"text": "good"}])
    folder = tmp_path / "out"
    ds.write_tokens(folder, tokenizer=tmp_path / "own.json", eos="?")
    assert ids_of(folder) == [[0, 1, 2], [0, 2]]
    assert (folder / "tokenizer.json").read_bytes() == (tmp_path / "own.json").read_bytes()
    facts = store(folder)
    assert (facts["vocabulary"], facts["tokenizer"]["file"]) == (3, "tokenizer.json")
    (folder / "tokens.json").unlink()
    assert ds.write_tokens(folder, tokenizer=tmp_path / "own.json", eos="?").kept == 1
    assert store(folder) == facts


@pytest.mark.parametrize("suffix", ["bin", "lengths", "sources", "loss_mask", "facts"])
def test_a_part_with_a_lost_or_damaged_file_is_made_again(suffix: str, tmp_path: Path) -> None:
    write = partial(
        documents(9).write_tokens, tmp_path, jobs=1, **gathered(rows_per_file=3, align=["loss_mask"])
    )
    write()
    whole = contents(tmp_path)
    name, manifest = f"part-000001.{suffix}", tmp_path / ".seekable-write.json"
    for damaged in (None, whole[name][:-1], whole[name][:-1] + b"\x7f"):
        manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "finished": {}}))
        (tmp_path / name).unlink()
        if damaged is not None:
            (tmp_path / name).write_bytes(damaged)
        assert write().kept == 2
        assert contents(tmp_path) == whole


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    with Killer() as killer:
        yield killer


def before(folder: Path) -> Written:
    return documents(7).write_tokens(folder, jobs=1, store=sk.formats.TokenStore(rows_per_file=2))


def overwrite(folder: Path, jobs: int = 1) -> Written:
    ds = documents(40).shuffle(seed=5)
    return ds.write_tokens(
        folder,
        eos=0,
        jobs=jobs,
        overwrite=True,
        store=sk.formats.TokenStore(rows_per_file=11, align=["loss_mask"], idx=True),
    )


def check_after_a_kill(folder: Path) -> None:
    """A part whose tokens are there is whole, and ``tokens.json`` is there for whole stores alone."""
    wanted, others = contents(folder.parent / "wanted"), contents(folder.parent / "before")
    found = contents(folder) if folder.exists() else {}
    found = {name: data for name, data in found.items() if not name.endswith(".tmp")}
    assert all(data in (wanted.get(name), others.get(name)) for name, data in found.items())
    if "tokens.json" in found:
        assert found in (wanted, others)
    for name, data in found.items():
        if name.endswith(".bin") and data == wanted.get(name):
            stem = name.removesuffix("bin")
            assert all(found[each] == wanted[each] for each in wanted if each.startswith(stem))
    overwrite(folder)
    assert contents(folder) == wanted
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]


def test_killed_at_an_operation_of_each_kind_the_next_call_has_the_bytes(
    tmp_path: Path, killer: Killer
) -> None:
    overwrite(tmp_path / "wanted")
    before(tmp_path / "before")
    before(tmp_path / "all")
    kinds = killer.operations(tmp_path / "all", overwrite, tmp_path / "all")
    for kind, number in one_of_each_kind(kinds):
        folder = tmp_path / kind
        before(folder)
        assert killer.kill_at(number, folder, overwrite, folder, kind=kind) == KILLED
        check_after_a_kill(folder)


@pytest.mark.exhaustive
@pytest.mark.parametrize("jobs", [1, 2, 5])
@pytest.mark.parametrize("has_others", [False, True], ids=["new", "over"])
def test_killed_at_any_file_operation_the_next_call_has_the_bytes(
    has_others: bool,  # noqa: FBT001 - a case
    jobs: int,
    tmp_path: Path,
    killer: Killer,
) -> None:
    overwrite(tmp_path / "wanted")
    before(tmp_path / "before")
    codes: list[int] = []
    while not codes or codes[-1]:
        folder = tmp_path / str(len(codes))
        if has_others:
            before(folder)
        operation = 1 + len(codes) * wider(1 if jobs == 1 else 3)
        codes.append(killer.kill_at(operation, folder, partial(overwrite, folder, jobs)))
        check_after_a_kill(folder)
    assert codes.count(KILLED) * wider(1) >= (50 if jobs == 1 else 5)


@pytest.mark.exhaustive
def test_the_same_bytes_whoever_does_it(tmp_path: Path) -> None:
    overwrite(tmp_path / "wanted")
    for jobs in (2, 5):
        overwrite(tmp_path / str(jobs), jobs)
        assert contents(tmp_path / str(jobs)) == contents(tmp_path / "wanted")
    with ThreadPoolExecutor(3) as threads:
        documents(40).shuffle(seed=5).write_tokens(
            tmp_path / "threads",
            eos=0,
            executor=threads,
            store=sk.formats.TokenStore(rows_per_file=11, align=["loss_mask"], idx=True),
        )
    assert contents(tmp_path / "threads") == contents(tmp_path / "wanted")


def test_a_store_is_not_overwritten_by_what_reads_it(tmp_path: Path) -> None:
    sk.from_sequence([{"tokens": [5, 6]}, {"tokens": [7]}]).write_tokens(
        tmp_path / "t", store=sk.formats.TokenStore(dtype="uint16")
    )
    store = sk.open(tmp_path / "t")
    with pytest.raises(sk.errors.InvalidArgument, match="would remove before it is read"):
        store[::-1].write_tokens(tmp_path / "t", overwrite=True)
    assert [document["tokens"].tolist() for document in sk.open(tmp_path / "t")] == [[5, 6], [7]]


def test_a_document_of_another_store_leads_to_its_row_there(tmp_path: Path) -> None:
    sk.from_sequence([{"tokens": [5, 6]}, {"tokens": [7]}]).write_tokens(
        tmp_path / "a", store=sk.formats.TokenStore(dtype="uint16")
    )
    sk.open(tmp_path / "a")[::-1].write_tokens(tmp_path / "b", store=sk.formats.TokenStore(dtype="uint16"))
    sources = [place.source for place in sk.open(tmp_path / "b").locate([0, 1])]
    part = str(tmp_path / "a" / "part-000000.bin")
    assert [(source.path, source.row) for source in sources if source] == [(part, 1), (part, 0)]
