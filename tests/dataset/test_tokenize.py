"""``sk.tokenize``: texts as a store of tokens, the same bytes whoever writes them, and mixtures refused."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.parallel.executors import Backwards, Inline
from tests.tokens.store_options import gathered
from tests.tokens.trained import EOS, TEXTS, byte_encoding, trained, trained_json

import seekable as sk
from seekable.formats.tokens.tokenizing import tokenize_data as tokenize_module

if TYPE_CHECKING:
    from pathlib import Path

    from seekable.parallel.progress import Progress


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder with two files of JSON lines, and the tokenizer beside it."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(2):
        lines = [json.dumps({"id": row, "text": f"{number} {row} {TEXTS[row % 7]}"}) for row in range(40)]
        (folder / f"{number}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (tmp_path / "tokenizer.json").write_text(trained_json(), encoding="utf-8")
    return folder


def tokenize(corpus: Path, name: str = "tokens", **changed: Any) -> sk.Dataset:
    arguments: dict[str, Any] = {
        "source": f"{corpus}/*.jsonl",
        "to": corpus.parent / name,
        "tokenizer": corpus.parent / "tokenizer.json",
        "eos": EOS,
        "jobs": 1,
    }
    arguments |= changed
    return sk.tokenize(arguments.pop("source"), **gathered(**arguments))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def test_the_documents_are_the_texts_with_their_ends(corpus: Path) -> None:
    tk = tokenize(corpus)
    tokenizer = trained()
    tokenizer.encode_special_tokens = True
    source = sk.open(corpus)
    assert len(tk) == len(source) == 80
    for document, record in zip(tk, source, strict=True):
        assert document["tokens"].tolist() == [*tokenizer.encode(record["text"]).ids, 0]
        assert document["tokens"].dtype == np.uint16
    described = json.loads((corpus.parent / "tokens" / "tokens.json").read_text())
    assert (described["documents"], described["eos"], described["vocabulary"]) == (80, 0, 600)
    assert described["tokenizer"]["engine"] == "hf"
    assert sk.formats.token_lengths(tk).sum() == described["tokens"]


def test_a_sample_leads_back_to_the_line_of_the_corpus(corpus: Path) -> None:
    tk = tokenize(corpus)
    described = json.loads((corpus.parent / "tokens" / "tokens.json").read_text())
    assert described["source"]["files"] == [str(corpus / "0.jsonl"), str(corpus / "1.jsonl")]
    assert len(tk.windows(16)) == described["tokens"] // 16


def test_a_file_whose_name_is_no_text_is_named_by_its_documents(corpus: Path) -> None:
    odd = os.fsdecode(os.fsencode(corpus) + b"/\xff 9.jsonl")
    (corpus / "1.jsonl").rename(odd)
    tk = tokenize(corpus, source=corpus)
    described = json.loads((corpus.parent / "tokens" / "tokens.json").read_text())
    assert described["source"]["files"] == [str(corpus / "0.jsonl"), odd]
    opened = sk.open(corpus.parent / "tokens")
    assert opened.fingerprint == tk.fingerprint
    assert opened.locate(40).source == sk.open(corpus).locate(40)


def test_samples_of_a_file_whose_name_is_no_text(corpus: Path) -> None:
    plain = tokenize(corpus, "plain", source=corpus, sample_size=16)
    (corpus / "1.jsonl").rename(os.fsdecode(os.fsencode(corpus) + b"/\xff 9.jsonl"))
    odd = tokenize(corpus, "odd", source=corpus, sample_size=16)
    assert [record["tokens"].tolist() for record in odd] == [record["tokens"].tolist() for record in plain]
    assert len(tokenize(corpus, "odd", source=corpus, sample_size=16)) == len(odd)


def test_any_processes_and_any_order_write_the_same_bytes(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenize_module, "_LEAST_BYTES", 1000)
    tokenize(corpus)
    expected = contents(corpus.parent / "tokens")
    parts = len([name for name in expected if name.endswith(".bin")])
    assert parts > 3
    with ThreadPoolExecutor(2) as threads:
        for number, executor in enumerate([Inline(), Backwards(parts), threads]):
            source = sk.open(f"{corpus}/*.jsonl")
            tokenize(corpus, f"again{number}", source=source, jobs=None, executor=executor)
            assert contents(corpus.parent / f"again{number}") == expected


@pytest.mark.exhaustive
@pytest.mark.parametrize("engine", ["hf", "gigatoken", "tiktoken"])
def test_processes_write_the_same_bytes(engine: str, corpus: Path) -> None:
    options: dict[str, Any] = {"engine": engine, "rows_per_file": 7}
    tokenize(corpus, **options)
    expected = contents(corpus.parent / "tokens")
    for jobs in (2, 5):
        tokenize(corpus, f"jobs{jobs}", **options, jobs=jobs)
        assert contents(corpus.parent / f"jobs{jobs}") == expected
    with ProcessPoolExecutor(2) as executor:
        tokenize(corpus, "pool", **options, jobs=None, executor=executor)
    assert contents(corpus.parent / "pool") == expected


def test_parts_are_cut_by_the_bytes_in_the_index(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut, node = tokenize_module._rows_per_part, sk.open(corpus)._node
    assert cut(sk.from_sequence([{"text": "a"}])._node) is None
    assert cut(sk.from_sequence([])._node) is None
    size = sum(path.stat().st_size for path in corpus.glob("*.jsonl"))
    assert cut(node) == 80 * (8 << 20) // size
    monkeypatch.setattr(tokenize_module, "_LEAST_BYTES", 1)
    assert cut(node) == size // 32 * 80 // size
    monkeypatch.setattr(tokenize_module, "_MOST_BYTES", 1)
    assert cut(node) == 1


def test_the_same_call_goes_on_and_keeps_what_is_there(corpus: Path) -> None:
    tokenize(corpus, rows_per_file=30)
    folder = corpus.parent / "tokens"
    expected = contents(folder)
    (folder / "part-000001.bin").unlink()
    (folder / "tokens.json").unlink()
    kept = (folder / "part-000002.bin").stat().st_ino
    tokenize(corpus, rows_per_file=30)
    assert contents(folder) == expected
    assert (folder / "part-000002.bin").stat().st_ino == kept


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        ({"eos": None}, "eos was 0, is None"),
        ({"bos": 5}, "bos was None, is 5"),
        ({"tokenizer": byte_encoding(), "eos": 0}, "tokenizer was 'xxh3:.*', is 'xxh3:"),
        ({"engine": "gigatoken"}, "engine was 'hf', is 'gigatoken'"),
        ({"column": "id"}, "column was 'text', is 'id'"),
        ({"dtype": "uint32"}, "dtype was None, is 'uint32'"),
        ({"idx": True}, "idx was False, is True"),
        ({"rows_per_file": 5}, "rows_per_file was .*, is 5"),
    ],
    ids=str,
)
def test_another_call_is_refused(changed: dict[str, Any], difference: str, corpus: Path) -> None:
    tokenize(corpus)
    expected = contents(corpus.parent / "tokens")
    with pytest.raises(sk.StateMismatch, match=difference):
        tokenize(corpus, **changed)
    assert contents(corpus.parent / "tokens") == expected


def test_a_changed_corpus_and_a_changed_tokenizer_are_refused(corpus: Path) -> None:
    tokenize(corpus)
    with (corpus / "1.jsonl").open("a") as file:
        file.write('{"text": "one more"}\n')
    with pytest.raises(sk.StateMismatch, match=r"the dataset was xxh3:.* of 80 records, is .* of 81 records"):
        tokenize(corpus)
    assert len(tokenize(corpus, overwrite=True)) == 81
    (corpus.parent / "tokenizer.json").write_text(trained_json(size=500), encoding="utf-8")
    with pytest.raises(sk.StateMismatch, match="tokenizer was"):
        tokenize(corpus)


@pytest.mark.parametrize("engine", ["gigatoken", "tiktoken"])
def test_fast_engines_write_the_same_after_a_comparison(engine: str, corpus: Path) -> None:
    tokenize(corpus)
    tokenize(corpus, "fast", engine=engine)
    made, fast = contents(corpus.parent / "tokens"), contents(corpus.parent / "fast")
    assert {name: data for name, data in made.items() if name != "tokens.json"} == {
        name: data for name, data in fast.items() if name != "tokens.json"
    }
    compared = json.loads(fast["tokens.json"])["tokenizer"]["compared"]
    assert (compared["documents"], compared["different"]) == (80, 0)


def test_an_engine_that_differs_writes_nothing(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(_: Any, texts: list[str]) -> Any:
        lengths = np.full(len(texts), 1, np.int64)
        return np.zeros(len(texts), np.uint32), lengths

    monkeypatch.setattr("seekable.formats.tokens.tokenizing.fast_engines.Gigatoken.encode", other)
    with pytest.raises(sk.errors.InvalidArgument, match=r"gigatoken gives other ids .* document 0 of the 80"):
        tokenize(corpus, engine="gigatoken")
    assert not (corpus.parent / "tokens").exists()


def test_changed_code_of_a_function_is_refused_unless_it_may_go(tmp_path: Path) -> None:
    def call(function: Any, **options: Any) -> sk.Dataset:
        texts = sk.from_sequence([{"text": "a"}, {"text": "b"}])
        return sk.tokenize(texts, to=tmp_path / "tokens", tokenizer=function, jobs=1, **options)

    call(lambda text: [len(text)])
    with pytest.raises(sk.StateMismatch, match=r"(?s)the code of .*check_code=False goes on"):
        call(lambda text: [len(text) + 1])
    assert call(lambda text: [len(text) + 1], check_code=False)[1]["tokens"].tolist() == [1]


@pytest.mark.parametrize("engine", ["gigatoken", "tiktoken"])
def test_a_text_that_cannot_be_compared_is_named_by_file_and_row(engine: str, corpus: Path) -> None:
    with (corpus / "1.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"text": "a\\ud800b"}\n')
    with pytest.raises(sk.errors.WrongType, match=r"record 40 of .*1\.jsonl.* as tokens: .* lone surrogate"):
        tokenize(corpus, engine=engine)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"text": 5}', "'text' must be a string"),
        ('{"body": "a"}', "it has no column 'text'"),
        ('{"text": "a\\ud800b"}', "lone surrogate"),
        ("[1]", "it must be a dict"),
    ],
    ids=["number", "missing", "surrogate", "list"],
)
def test_a_record_without_a_text_is_named_by_file_and_row(line: str, why: str, corpus: Path) -> None:
    lines = (corpus / "1.jsonl").read_text(encoding="utf-8").splitlines()
    lines[17] = line
    (corpus / "1.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(sk.errors.WrongType, match=why) as caught:
        tokenize(corpus)
    assert str(corpus / "1.jsonl") in str(caught.value)
    assert "17" in str(caught.value)


def test_an_id_that_does_not_fit_is_named_by_file_and_row(corpus: Path) -> None:
    def large(text: str) -> list[int]:
        return [70_000 if text.startswith("1 17") else 1]

    with pytest.raises(sk.errors.WrongType, match="has the id 70000, and uint16") as caught:
        tokenize(corpus, tokenizer=large, eos=0, dtype="uint16")
    assert re.search(rf"17.*{re.escape(str(corpus / '1.jsonl'))}|1\.jsonl.*17", str(caught.value))


def test_datasets_lines_of_text_and_columns_of_tables(corpus: Path) -> None:
    records = sk.open(corpus)
    expected = [document["tokens"].tolist() for document in tokenize(corpus)]
    assert [each["tokens"].tolist() for each in tokenize(corpus, "a", source=records)] == expected
    records.write_parquet(corpus.parent / "table")
    of_table = tokenize(corpus, "b", source=corpus.parent / "table")
    assert [each["tokens"].tolist() for each in of_table] == expected
    with pytest.raises(sk.errors.MissingColumn, match="there is no column 'body'"):
        tokenize(corpus, "c", source=corpus.parent / "table", column="body")
    (corpus.parent / "lines.txt").write_text("one\n\nthree\n")
    of_lines = tokenize(corpus, "d", source=corpus.parent / "lines.txt", tokenizer=byte_encoding())
    assert [bytes(each["tokens"][:-1].tolist()) for each in of_lines] == [b"one", b"", b"three"]
    of_list = tokenize(corpus, "e", source=[corpus / "1.jsonl", corpus / "0.jsonl"])
    assert [each["tokens"].tolist() for each in of_list] == expected[40:] + expected[:40]


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_none_one_and_many_documents(count: int, tmp_path: Path) -> None:
    texts = sk.from_sequence([{"text": "a" * (number % 3)} for number in range(count)], version=count)
    tk = sk.tokenize(texts, to=tmp_path / "tokens", tokenizer=byte_encoding(), jobs=1)
    assert [len(document["tokens"]) for document in tk] == [number % 3 for number in range(count)]


def test_holes_are_left_out(tmp_path: Path) -> None:
    texts = sk.from_sequence(["a", sk.HOLE, "b"], version=1)
    tk = sk.tokenize(texts, to=tmp_path / "tokens", tokenizer=byte_encoding(), eos=EOS, jobs=1)
    assert [document["tokens"].tolist() for document in tk] == [[97, 256], [98, 256]]


CHATS = [
    {"parts": [{"type": "prompt", "text": "ab"}, {"type": "response", "text": "c"}]},
    {"parts": [{"type": "system", "text": "d"}]},
]


def test_parts_have_a_loss_mask_beside(tmp_path: Path) -> None:
    chats = sk.from_sequence(CHATS, version=1)
    options: dict[str, Any] = {"tokenizer": byte_encoding(), "eos": EOS, "jobs": 1}
    tk = sk.tokenize(
        chats, to=tmp_path / "a", store=sk.formats.TokenStore(align={"loss_mask": sk.LossMask()}), **options
    )
    assert [document["loss_mask"].tolist() for document in tk] == [[0, 0, 1, 1], [0, 1]]
    assert tk[0]["tokens"].tolist() == [97, 98, 99, 256]
    other = {"loss_mask": sk.LossMask(masked=("prompt",))}
    with pytest.raises(sk.StateMismatch, match=r"aux was .*'masked': .*is .*'masked'"):
        sk.tokenize(chats, to=tmp_path / "a", store=sk.formats.TokenStore(align=other), **options)


def test_a_function_that_returns_ids_and_arrays_beside(tmp_path: Path) -> None:
    def chat(record: dict[str, Any]) -> dict[str, Any]:
        text = "".join(part["text"] for part in record["parts"])
        return {"tokens": list(text.encode()), "loss_mask": [1] * len(text), "weight": [0.5] * len(text)}

    chats = sk.from_sequence([sk.HOLE, *CHATS], version=1)
    options: dict[str, Any] = {"tokenizer": byte_encoding(), "eos": EOS, "jobs": 1}
    tk = sk.tokenize(chats, to=tmp_path / "a", store=sk.formats.TokenStore(parts=chat), **options)
    assert tk[0]["tokens"].tolist() == [97, 98, 99, 256]
    assert tk[0]["loss_mask"].tolist() == [1, 1, 1, 1]
    assert tk[0]["weight"].tolist() == [0.5, 0.5, 0.5, 0]
    assert tk[0]["loss_mask"].dtype == np.uint8
    with pytest.raises(sk.errors.InvalidArgument, match="leave out one"):
        sk.tokenize(
            chats,
            to=tmp_path / "b",
            store=sk.formats.TokenStore(parts=chat, align={"loss_mask": sk.LossMask()}),
            **options,
        )


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"tokenizer": None}, sk.errors.InvalidArgument, "give tokenizer="),
        ({"tokenizer": "no.json"}, sk.DataNotFound, "there is no tokenizer"),
        ({"source": "no.jsonl"}, sk.DataNotFound, "no.jsonl"),
        ({"eos": "no such token"}, sk.errors.InvalidArgument, "no single token"),
        ({"jobs": 0}, sk.errors.InvalidArgument, "jobs"),
        ({"rows_per_file": 0}, sk.errors.InvalidArgument, "rows_per_file"),
        ({"idx": 1}, sk.errors.WrongType, "idx"),
        ({"idx": True, "dtype": "uint32"}, sk.errors.InvalidArgument, "Megatron's index has no uint32"),
    ],
    ids=str,
)
def test_wrong_arguments(changed: dict[str, Any], error: type[Exception], message: str, corpus: Path) -> None:
    with pytest.raises(error, match=message):
        tokenize(corpus, **changed)
    assert not (corpus.parent / "tokens").exists()


def test_a_store_inside_of_the_folder_that_is_read_is_refused(corpus: Path) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="would lie in the folder"):
        tokenize(corpus, source=corpus, to=corpus / "tokens")
    assert len(tokenize(corpus, source=f"{corpus}/*.jsonl", to=corpus / "tokens")) == 80


def test_a_stream_is_written_by_its_method(corpus: Path) -> None:
    with pytest.raises(sk.errors.WrongType, match=r"write_tokens\(\)"):
        tokenize(corpus, source=sk.open(corpus).stream(lanes=2, epochs=1))


def test_progress_counts_tokens(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEEKABLE_BAR_AFTER_SECONDS", "0")
    seen: list[Progress] = []
    tk = tokenize(corpus, rows_per_file=20, progress=seen.append)
    mine = [progress for progress in seen if progress.task == "tokenizing"]
    assert mine[-1].tokens == sk.formats.token_lengths(tk).sum()
    assert (mine[-1].records, mine[-1].rows) == (80, 80)
    assert [progress.tokens for progress in mine] == sorted(progress.tokens for progress in mine)


def test_a_call_that_failed_before_a_part_was_finished_leaves_nothing_in_the_way(corpus: Path) -> None:
    with pytest.raises(sk.errors.WrongType, match="it has no column 'txt'"):
        tokenize(corpus, column="txt")
    assert len(tokenize(corpus)) == len(sk.open(corpus / "*.jsonl"))


def test_samples_of_a_fixed_size_are_documents_one_after_another(corpus: Path) -> None:
    ids = [number for document in tokenize(corpus) for number in document["tokens"].tolist()]
    samples = tokenize(corpus, "samples", sample_size=64)
    assert [number for sample in samples for number in sample["tokens"].tolist()] == ids[
        : len(ids) // 64 * 64
    ]
    assert len(tokenize(corpus, "samples", sample_size=64)) == len(samples) == len(ids) // 64
    with pytest.raises(sk.StateMismatch, match="sample_size was 64, is 65"):
        tokenize(corpus, "samples", sample_size=65)
    for wrong in (0, -1):
        with pytest.raises(sk.errors.InvalidArgument, match="sample_size must be at least 1"):
            tokenize(corpus, "other", sample_size=wrong)
    with pytest.raises(sk.errors.InvalidArgument, match="give eos="):
        tokenize(corpus, "other", sample_size=64, eos=None)


def test_masks_of_samples_count_as_in_forager(tmp_path: Path) -> None:
    options: dict[str, Any] = {"tokenizer": byte_encoding(), "eos": EOS, "jobs": 1}
    chats = sk.from_sequence(CHATS, version=1)
    tk = sk.tokenize(
        chats,
        to=tmp_path / "a",
        store=sk.formats.TokenStore(sample_size=2, align={"loss_mask": sk.LossMask()}),
        **options,
    )
    assert [sample["tokens"].tolist() for sample in tk] == [[97, 98], [99, 256], [100, 256]]
    assert [sample["loss_mask"].tolist() for sample in tk] == [[1, 1], [0, 0], [1, 0]]
