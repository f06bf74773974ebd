"""Documents of files of tokens, as the worked examples of their formats have them, and drawn ones."""

from __future__ import annotations

import json
import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.cli.command import run
from tests.formats.forager import write_data
from tests.formats.tokens.token_formats import (
    BOS,
    EOS,
    FORMS,
    Form,
    drawn,
    joined,
    llm_c,
    megatron,
    numpy_file,
)
from tests.thrift import some

import seekable as sk
from seekable.dataset.verify_data import verify
from seekable.formats.tokens.token_file import token_options
from seekable.formats.tokens.words import TokenSchema, TokenWords

if TYPE_CHECKING:
    from pathlib import Path

WRITTEN = 1_700_000_000

MEGATRON_IDX = """
4d4d49444944580000 0100000000000000 08 0400000000000000 0400000000000000
03000000 02000000 03000000 01000000
0000000000000000 0600000000000000 0a00000000000000 1000000000000000
0000000000000000 0100000000000000 0300000000000000 0400000000000000
"""
"""The index of the documents 5 6 7, then 1 2 and 3 4 5, then 9, as Megatron-core 0.16.1 writes it."""

TNTIDX = """
544e544944580000 0100000000000000 0400000000000000 0400000000000000 0200000000000000 0200000000000000
0000000000000000 0100000000000000 0200000000000000
0000000000000000 0300000000000000 0400000000000000
0300000000000000 0100000000000000
"""
"""The index of fairseq over the items 5 6 7 and 9, int32."""


def hexed(text: str) -> bytes:
    return bytes.fromhex("".join(text.split()))


def documents(asked: str | Path, *, index: sk.Index | None = None, **options: Any) -> list[list[int]]:
    """Return the documents that are opened with options of tokens."""
    dataset = sk.open(asked, format=sk.formats.Tokens(**options) if options else None, index=index)
    found = [record["tokens"].tolist() for record in dataset]
    assert [dataset[row]["tokens"].tolist() for row in range(len(dataset))] == found
    return found


def write(folder: Path, files: dict[str, bytes]) -> Path:
    write_data(folder, files)
    return folder


def test_a_pair_of_megatron(tmp_path: Path) -> None:
    write(tmp_path, {"a.idx": hexed(MEGATRON_IDX), "a.bin": hexed("0500060007000100020003000400050009 00")})
    expected = [[5, 6, 7], [1, 2], [3, 4, 5], [9]]
    every: list[str | Path] = [
        *(f"megatron:{tmp_path}/{name}" for name in ("a", "a.bin", "a.idx", "*", "{a,a}")),
        f"megatron:{tmp_path}",
        f"tokens:{tmp_path}/a.bin",
        f"tokens:{tmp_path}",
        tmp_path / "a.bin",
        tmp_path,
    ]
    for asked in every:
        times = 2 if "{" in str(asked) else 1
        assert documents(asked) == expected * times
    assert sk.open(tmp_path)[0]["tokens"].dtype == np.uint16
    assert sk.open(tmp_path).locate(2).offset == 10


def test_modes_of_a_multimodal_pair_are_told_by_the_size(tmp_path: Path) -> None:
    idx = "4d4d49444944580000 0100000000000000 04 0100000000000000 0200000000000000 03000000 0000000000000000"
    idx += "0000000000000000 0100000000000000 01"
    assert len(hexed(idx)) == 63
    write(tmp_path, {"a.idx": hexed(idx), "a.bin": hexed("05000000 06000000 07000000")})
    assert documents(f"megatron:{tmp_path}/a") == [[5, 6, 7]]
    assert sk.open(tmp_path)[0]["tokens"].dtype == np.int32


def test_tokens_of_fairseq_are_stored_plus_one(tmp_path: Path) -> None:
    data = hexed("06000000 07000000 08000000 0a000000")
    write(tmp_path, {"a.idx": hexed(TNTIDX), "a.bin": data})
    assert documents(f"megatron:{tmp_path}/a") == [[5, 6, 7], [9]]
    assert documents(tmp_path) == [[5, 6, 7], [9]]


def test_five_tokens_of_llm_c(tmp_path: Path) -> None:
    header = hexed("88d83401 01000000 05000000")
    path = tmp_path / "train_000001.bin"
    path.write_bytes(header + bytes(1024 - len(header)) + hexed("50c4 0b00 0700 50c4 0900"))
    assert path.stat().st_size == 1034
    assert documents(f"tokens:{path}", bos=50256) == [[50256, 11, 7], [50256, 9]]
    assert documents(f"tokens:{path}") == [[50256, 11, 7, 50256, 9]]
    assert documents(path, eos=50256) == [[50256], [11, 7, 50256], [9]]


def test_what_stands_before_the_first_bos_is_a_document(tmp_path: Path) -> None:
    write(tmp_path, llm_c([np.array([8, 9]), np.array([BOS, 5]), np.array([BOS])]))
    assert documents(tmp_path / "a.bin", bos=BOS) == [[8, 9], [BOS, 5], [BOS]]


def test_documents_of_datatrove(tmp_path: Path) -> None:
    files = {"0_unshuffled.ds": hexed("0500060007000900"), "0_unshuffled.ds.loss": b"\1\0\1\1"}
    files["0_unshuffled.ds.index"] = hexed("0300000000000000 0400000000000000")
    for metadata in ({}, {"0_unshuffled.ds.metadata": b"Unknown Tokenizer|2|2\n4\n4"}):
        write(tmp_path, files | metadata)
        assert documents(tmp_path) == documents(tmp_path / "0_unshuffled.ds") == [[5, 6, 7], [9]]
    assert {name: array.tolist() for name, array in sk.open(tmp_path)[0].items()} == {
        "tokens": [5, 6, 7],
        "loss_mask": [1, 0, 1],
    }


def test_a_boundary_of_olmo_may_be_eos_and_then_bos(tmp_path: Path) -> None:
    tokens = [3, 8, 7, 3, 9, 7, 9, 3, 7, 3]
    (tmp_path / "part-0-00000.npy").write_bytes(np.array(tokens, "<u2").tobytes())
    asked: dict[str, Any] = {"asked": f"tokens:{tmp_path}", "dtype": "uint16"}
    assert documents(**asked, eos=7, bos=3) == [[3, 8, 7], [3, 9, 7, 9, 3, 7], [3]]
    assert documents(**asked, eos=7) == [[3, 8, 7], [3, 9, 7], [9, 3, 7], [3]]
    assert documents(**asked, bos=3) == [[3, 8, 7], [3, 9, 7, 9], [3, 7], [3]]
    assert documents(**asked) == [tokens]


def test_ends_of_documents_are_found_across_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = np.array([3, 8, 7, 3, 9, 7, 9, 3, 7, 3], "<u2")
    (tmp_path / "a.bin").write_bytes(tokens.tobytes())
    for size in (2, 4, 6):
        monkeypatch.setattr("seekable.formats.tokens.token_file.CHUNK_BYTES", size)
        asked: dict[str, Any] = {"dtype": "uint16", "index": sk.Index(folder=tmp_path / str(size))}
        assert documents(tmp_path / "a.bin", **asked, eos=7, bos=3) == [[3, 8, 7], [3, 9, 7, 9, 3, 7], [3]]
        assert documents(tmp_path / "a.bin", **asked, eos=7) == [[3, 8, 7], [3, 9, 7], [9, 3, 7], [3]]


def test_arrays_of_numpy(tmp_path: Path) -> None:
    rows = np.arange(6, dtype="<i8").reshape(2, 3)
    write(
        tmp_path,
        {"rows.npy": numpy_file(rows), "row.npy": numpy_file(rows[0]), "none.npy": numpy_file(rows[:0])},
    )
    assert documents(tmp_path / "rows.npy") == [[0, 1, 2], [3, 4, 5]]
    assert documents(tmp_path / "row.npy") == [[0, 1, 2]]
    assert documents(tmp_path / "row.npy", eos=1) == [[0, 1], [2]]
    assert documents(tmp_path / "none.npy") == []
    with pytest.raises(
        sk.errors.InvalidArgument, match="2 rows, each of which is a document: leave eos= out"
    ):
        sk.open(tmp_path / "rows.npy", format=sk.formats.Tokens(eos=1))


def test_several_files_of_several_forms_are_one_dataset(tmp_path: Path) -> None:
    write(tmp_path, {"b.npy": numpy_file(np.array([1, 2], "<u2"))} | megatron([np.array([5]), np.array([])]))
    write(tmp_path / "deeper", megatron([np.array([70_000])], dtype="<i4", code=4))
    dataset = sk.open(f"tokens:{tmp_path}")
    assert [record["tokens"].tolist() for record in dataset] == [[5], [], [1, 2], [70_000]]
    assert documents(f"megatron:{tmp_path}") == [[5], [], [70_000]]


@pytest.mark.parametrize("name", FORMS)
def test_drawn_documents_are_delivered(tmp_path: Path, name: str) -> None:
    check_drawn(tmp_path, FORMS[name], seed=1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(2, 2 + some(38)))
@pytest.mark.parametrize("name", FORMS)
def test_many_drawn_documents_are_delivered(tmp_path: Path, name: str, seed: int) -> None:
    check_drawn(tmp_path, FORMS[name], seed=seed)


def check_drawn(folder: Path, form: Form, *, seed: int) -> None:
    some = drawn(np.random.default_rng(seed), form, most=100)
    write(folder, form.write(some))
    dataset = sk.open(form.asked.replace("DIR", str(folder)), **form.options)
    assert [record["tokens"].tolist() for record in dataset] == [document.tolist() for document in some]
    words = TokenWords(dataset._node.files)  # type: ignore[attr-defined]
    assert words.lengths().tolist() == [len(document) for document in some]
    at = np.arange(len(some), dtype=np.int64)
    first, counts = words.spans(np.zeros_like(at), at)
    assert [words.span(0, row) for row in range(len(some))] == list(
        zip(first.tolist(), counts.tolist(), strict=True)
    )


def test_aligned_arrays_belong_to_the_tokens(tmp_path: Path) -> None:
    some = drawn(np.random.default_rng(4), FORMS["olmo"])
    ends = np.cumsum([0, *map(len, some)])
    for name, column, every in (("olmo", "label_mask", 2), ("datatrove", "loss_mask", 3)):
        form = FORMS[name]
        write(tmp_path / name, form.write(some))
        dataset = sk.open(form.asked.replace("DIR", str(tmp_path / name)), **form.options)
        assert dataset.columns == ["tokens", column]
        for row, record in enumerate(dataset):
            expected = np.arange(ends[row], ends[row + 1]) % every == (1 if every == 2 else 0)
            assert record[column].tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        (
            {},
            sk.errors.InvalidArgument,
            r"train\.bin' does not say of which type .*dtype='uint16', eos=50256",
        ),
        ({"dtype": "float32"}, sk.errors.InvalidArgument, r"dtype must be one of 'uint16', .*got 'float32'"),
        ({"dtype": ">u2"}, sk.errors.InvalidArgument, "dtype must be one of"),
        ({"dtype": "nonsense"}, sk.errors.WrongType, "dtype must be the name of a type"),
        ({"dtype": "uint16", "eos": -1}, sk.errors.InvalidArgument, "eos must be at least 0"),
        ({"dtype": "uint16", "eos": "7"}, sk.errors.WrongType, "eos must be an integer"),
        (
            {"dtype": "uint16", "bos": 65536},
            sk.errors.InvalidArgument,
            "bos=65536 is no token .* at most 65535",
        ),
    ],
)
def test_options_are_checked(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], told: str
) -> None:
    (tmp_path / "train.bin").write_bytes(bytes(8))
    with pytest.raises(error, match=told):
        sk.open(f"tokens:{tmp_path}/train.bin", format=sk.formats.Tokens(**options))


def test_options_of_tokens_are_refused_for_other_data(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"{}\n")
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"format=Tokens\(\.\.\.\) is for tokens, and .* is jsonl"
    ):
        sk.open(tmp_path, format=sk.formats.Tokens(eos=0))


def test_a_type_that_contradicts_the_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path, megatron([np.array([5])]))
    assert documents(tmp_path / "a.bin", dtype="uint16") == [[5]]
    with pytest.raises(
        sk.errors.InvalidArgument, match=r"dtype='int32' contradicts .*a\.idx', .* uint16: leave dtype="
    ):
        sk.open(tmp_path / "a.bin", format=sk.formats.Tokens(dtype="int32"))


def test_a_format_says_that_a_folder_is_of_tokens(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(joined([np.array([5, EOS, 6])], "<u2"))
    (tmp_path / "a.json").write_bytes(b"{}\n")
    assert documents(f"tokens:{tmp_path}", dtype="uint16", eos=EOS) == [[5, EOS], [6]]
    assert [len(record["tokens"]) for record in sk.open(tmp_path, format="tokens-u2-eos7")] == [2, 1]
    assert sk.open(tmp_path)[0] == {}


def test_options_are_part_of_the_name_of_the_format(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(joined([np.array([5, EOS, 6])], "<u2"))
    one = sk.open(tmp_path / "a.bin", format=sk.formats.Tokens(dtype="uint16", eos=EOS))
    other = sk.open(tmp_path / "a.bin", format=sk.formats.Tokens(dtype="uint16"))
    assert (len(one), len(other)) == (2, 1)
    assert one.fingerprint != other.fingerprint
    assert sk.open(tmp_path / "a.bin", format="tokens-u2-eos7").fingerprint == one.fingerprint
    assert token_options("tokens-u2-eos7-bos1").name == "tokens-u2-eos7-bos1"
    with pytest.raises(sk.errors.InvalidArgument, match="'tokens-u3' is not known"):
        sk.open(tmp_path / "a.bin", format="tokens-u3")


def test_documents_are_counted_twice_where_an_index_and_a_token_tell_them(tmp_path: Path) -> None:
    write(tmp_path, megatron([np.array([5, EOS]), np.array([6]), np.array([8, EOS])]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(documents(tmp_path / "a.bin")) == 3
    with pytest.warns(UserWarning, match=r"a\.idx says that there are 3 documents.* by eos=7 .* 2$"):
        assert len(documents(tmp_path / "a.bin", eos=EOS)) == 3


def test_a_token_that_is_nowhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(joined([np.array([5, 6])], "<u2"))
    with pytest.warns(UserWarning, match=r"a\.bin: none of its 2 tokens is eos=9"):
        sk.open(tmp_path / "a.bin", format=sk.formats.Tokens(dtype="uint16", eos=9))


def test_a_pair_without_its_index_is_told(tmp_path: Path) -> None:
    write(tmp_path, megatron([np.array([5])]))
    (tmp_path / "a.idx").unlink()
    with pytest.raises(sk.DataNotFound, match=r"there is no .*a\.idx', which says where .* 'tokens:"):
        sk.open(f"megatron:{tmp_path}/a")
    with pytest.raises(sk.errors.InvalidArgument, match=r"'megatron:' is not complete"):
        sk.open("megatron:")


def aged(folder: Path, seconds: int = 0) -> None:
    """Let all files be older than an index that is made now, so that none is doubted for its time."""
    for path in folder.iterdir():
        if path.is_file():
            os.utime(path, (WRITTEN + seconds, WRITTEN + seconds))


def test_a_file_is_surveyed_again_when_one_beside_it_has_changed(tmp_path: Path) -> None:
    one, other = [np.array([1, 2]), np.array([3])], [np.array([1]), np.array([2, 3])]
    write(tmp_path, megatron(one))
    aged(tmp_path)
    before = sk.open(tmp_path)
    assert [len(record["tokens"]) for record in before] == [2, 1]
    (tmp_path / "a.idx").write_bytes(megatron(other)["a.idx"])
    aged(tmp_path, seconds=-100)  # It is older than the first one, and of the same size.
    os.utime(tmp_path / "a.bin", (WRITTEN, WRITTEN))
    after = sk.open(tmp_path)
    assert [record["tokens"].tolist() for record in after] == [[1], [2, 3]]
    assert after.fingerprint != before.fingerprint


def test_a_file_that_comes_beside_is_read(tmp_path: Path) -> None:
    some = [np.array([1, 2]), np.array([3])]
    files = FORMS["olmo"].write(some)
    write(tmp_path, {"token_ids_0.npy": files["token_ids_0.npy"]})
    aged(tmp_path)
    assert documents(f"tokens:{tmp_path}", dtype="uint32") == [[1, 2, 3]]
    write(tmp_path, files)
    aged(tmp_path)
    assert documents(f"tokens:{tmp_path}", dtype="uint32") == [[1, 2], [3]]
    (tmp_path / "labels_mask_0.npy").unlink()
    assert sk.open(f"tokens:{tmp_path}", format=sk.formats.Tokens(dtype="uint32")).columns == ["tokens"]


def test_an_index_beside_that_has_not_changed_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, megatron([np.array([1, 2])]))
    aged(tmp_path)
    sk.open(tmp_path)
    monkeypatch.setattr("seekable.formats.tokens.token_recognition._survey_of_family", None)
    assert documents(tmp_path) == [[1, 2]]


def test_a_schema_is_read_back() -> None:
    schema = TokenSchema("<u4", skip=3, inside=(("loss", "|u1"),), warnings=("one",))
    assert TokenSchema.decode(schema.encode()) == schema
    assert schema.width == 5


def test_verification_looks_at_the_files_beside(tmp_path: Path) -> None:
    write(tmp_path, megatron([np.array([1, 2]), np.array([3])]))
    aged(tmp_path)
    sk.open(tmp_path)
    assert verify(tmp_path).problems == verify(tmp_path, deep=True, decode=True).problems == ()
    (tmp_path / "a.idx").write_bytes(megatron([np.array([1]), np.array([2, 3])])["a.idx"])
    for deep in (False, True):
        (problem,) = verify(f"megatron:{tmp_path}/a", deep=deep).problems
        assert problem.kind == "changed"
        assert problem.path == str(tmp_path / "a.bin")
        assert "a.idx', which tells its records, was changed" in problem.message


def test_commands_take_tokens(tmp_path: Path) -> None:
    write(tmp_path, FORMS["nanogpt"].write([np.array([5, EOS]), np.array([6, 8, EOS])]))
    given = [f"tokens:{tmp_path}", "--format", f"tokens-u2-eos{EOS}"]
    for command in ("info", "index", "verify"):
        assert run(command, *given).returncode == 0
    assert json.loads(run("get", given[0], "1", *given[1:]).stdout) == {"tokens": [6, 8, EOS]}


def test_arrays_that_megatron_keeps_beside_tokens_are_no_documents(tmp_path: Path) -> None:
    orders = (
        "cache/GPTDataset_indices/0a-GPTDataset-train-document_index.npy",
        "cache/0a-BlendedDataset-train-dataset_sample_index.npy",
        "a_indexmap_9ns_9sl_1s_doc_idx.npy",
    )
    write(tmp_path, megatron([np.array([5])]) | {name: numpy_file(np.arange(9)) for name in orders})
    for asked in (str(tmp_path), f"tokens:{tmp_path}", f"megatron:{tmp_path}"):
        assert documents(asked) == [[5]]


def test_many_pairs_are_indexed_at_once(tmp_path: Path) -> None:
    for number in range(20):
        files = megatron([np.array([number]), np.array([7, 8])])
        write(tmp_path, {name.replace("a.", f"{number:02d}."): data for name, data in files.items()})
    aged(tmp_path)
    found = documents(tmp_path)
    assert found[::2] == [[number] for number in range(20)]
    assert documents(tmp_path) == found
