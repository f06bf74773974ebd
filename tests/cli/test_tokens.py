"""The commands on data of tokens: its contents, what packing gives, the texts of documents and samples."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tiktoken
from tests.cli.command import documents, output, run
from tests.tokens.trained import EOS, trained_json

import seekable as sk
from seekable.integrations.megatron import gpt_datasets

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = [" ".join(f"word{row * word % 7}" for word in range(row * row % 23)) + f" {row}" for row in range(60)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, its tokenizer, the token store ``tokens``, and its tokens as ``plain.bin``."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "corpus").mkdir()
    for file in range(2):
        lines = [json.dumps({"text": text}) for text in TEXTS[file * 30 : file * 30 + 30]]
        (folder / "corpus" / f"{file}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (folder / "tokenizer.json").write_text(trained_json(), encoding="utf-8")
    sk.tokenize(
        str(folder / "corpus"),
        to=folder / "tokens",
        tokenizer=folder / "tokenizer.json",
        eos=EOS,
        jobs=1,
        store=sk.formats.TokenStore(idx=True),
    )
    (folder / "plain.bin").write_bytes((folder / "tokens" / "part-000000.bin").read_bytes())
    return folder


def lengths(folder: Path) -> np.ndarray[Any, np.dtype[np.int64]]:
    return sk.formats.token_lengths(sk.open(folder / "tokens"))


def cut_in_natural_order(sizes: np.ndarray[Any, Any], length: int) -> int:
    """Count the documents of which two tokens are in different windows, token by token."""
    window = np.arange(sizes.sum()) // length
    ends = np.cumsum(sizes)
    return sum(int(np.ptp(window[end - size : end])) > 0 for size, end in zip(sizes, ends, strict=True))


@pytest.mark.parametrize("length", [None, 1, 16, 50, 1_000_000])
def test_info_of_a_token_store(folder: Path, length: int | None) -> None:
    given = [] if length is None else ["--length", str(length)]
    (told,) = documents("info", "tokens", *given, cwd=folder)
    sizes, at = lengths(folder), length or 2048
    tokens = int(sizes.sum())
    names = ("records", "documents", "tokens", "empty_documents", "dtype")
    assert [told[name] for name in names] == [60, 60, tokens, 0, "uint16"]
    store = told["store"]
    assert (store["vocabulary"], store["eos"], store["bos"], store["column"]) == (600, 0, None, "text")
    assert (store["tokenizer"]["engine"], store["tokenizer"]["file"]) == ("hf", "tokenizer.json")
    p50, p95, p99 = np.percentile(sizes, [50, 95, 99], method="inverted_cdf")
    assert told["document_tokens"] == {
        "mean": tokens / 60,
        "min": sizes.min(),
        "max": sizes.max(),
        "p50": p50,
        "p95": p95,
        "p99": p99,
    }
    for bucket in told["histogram"]:
        here = sizes[(sizes >= bucket["from"]) & (sizes <= bucket["to"])]
        assert (bucket["documents"], bucket["tokens"]) == (here.size, here.sum())
        assert bucket["share_of_tokens"] == here.sum() / tokens
    assert sum(bucket["documents"] for bucket in told["histogram"]) == 60
    packing = told["packing"]
    assert packing["length"] == at
    assert packing["concat"] == {
        "samples": tokens // at,
        "tail": tokens % at,
        "documents_cut": cut_in_natural_order(sizes, at),
    }
    best = sk.open(folder / "tokens").pack(at, seed=0, method="best_fit")
    assert packing["best_fit"]["samples"] == len(best)
    assert packing["best_fit"]["padding"] == len(best) * at - tokens
    assert packing["best_fit"]["documents_cut"] == (sizes > at).sum()


def test_info_of_tokens_for_people(folder: Path) -> None:
    told = output("info", "tokens", "-L", "64", cwd=folder).decode()
    facts = dict(line.split("  ", 1) for line in told.partition("\n\n")[0].splitlines())
    tokens = int(lengths(folder).sum())
    assert facts["documents"].strip() == "60"
    assert facts["tokens"].strip() == f"{tokens:,} (uint16)"
    assert facts["vocabulary"].strip() == "600; eos 0, bos none"
    assert facts["concat at 64"].strip().startswith(f"{tokens // 64:,} samples; {tokens % 64} tokens (")
    header, *rows = told.partition("\n\n")[2].splitlines()
    assert header.split() == ["length", "documents", "%", "tokens", "%"]
    assert sum(int(row.split()[3].replace(",", "")) for row in rows) == 60


@pytest.mark.parametrize(
    "command",
    [
        ["tokens:plain.bin", "--set", "dtype=uint16", "--set", "eos=0"],
        ["plain.bin", "--set", "dtype=uint16", "--set", "eos=0"],
        ["megatron:tokens/part-000000"],
    ],
    ids=["spec", "path", "megatron"],
)
def test_tokens_of_other_tools(command: list[str], folder: Path) -> None:
    (told,) = documents("info", *command, cwd=folder)
    assert (told["documents"], told["tokens"]) == (60, lengths(folder).sum())
    assert (told["store"] is None) == ("plain.bin" in command[0])
    expected = sk.open(folder / "tokens")[7]["tokens"].tolist()
    (read,) = documents("get", command[0], "7", *command[1:], cwd=folder)
    assert read["record"] == {"tokens": expected}
    assert json.loads(output("head", *command, "-n", "8", cwd=folder).splitlines()[7]) == {"tokens": expected}
    (packed,) = documents("info", *command, "-L", "32", cwd=folder)
    assert packed["packing"]["concat"]["samples"] == lengths(folder).sum() // 32
    assert b"good: 60 records" in output("verify", *command, "--deep", "--decode", cwd=folder)
    assert b"60 records in 1 file" in output("index", *command, cwd=folder)
    assert len(documents("sample", *command, "-n", "3", cwd=folder)) == 3


def test_documents_without_tokens(tmp_path: Path) -> None:
    sk.from_sequence([{"tokens": list[int]()}] * 3).write_tokens(
        tmp_path / "t", store=sk.formats.TokenStore(dtype="uint16")
    )
    (told,) = documents("info", tmp_path / "t")
    assert (told["documents"], told["empty_documents"], told["tokens"]) == (3, 3, 0)
    assert told["packing"]["best_fit"] == dict.fromkeys(
        ("samples", "padding", "documents_cut", "pieces", "patterns"), 0
    )
    assert b"0 samples; 0 tokens (0.0 %) in the tail" in output("info", "t", cwd=tmp_path)


def test_the_call_that_is_printed_packs_the_same_samples(folder: Path) -> None:
    (told,) = documents(
        "info", "plain.bin", "--set", "dtype=uint16", "--set", "eos=0", "-L", "32", cwd=folder
    )
    packed = eval(told["packing"]["python"], {"sk": _Opener(folder)})
    assert told["packing"]["concat"]["samples"] == len(packed)
    shown = output("info", "tokens", "-L", "32", "--index", "folder=x", cwd=folder).decode()
    assert "in Python             sk.open('tokens', index=sk.Index(folder='x')).pack(32, seed=0)\n" in shown


class _Opener:
    """Stands for the module seekable in a folder."""

    Packing = sk.Packing

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    formats = sk.formats

    def open(self, path: str, **options: Any) -> sk.Dataset:
        return sk.open(self._folder / path, **options)


SIZES = np.arange(1, 10)


def test_lists_of_ids_are_packed_too(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "ids.jsonl"
    path.write_text("".join(json.dumps({"ids": [row - 1] * row}) + "\n" for row in SIZES.tolist()))
    (told,) = documents("info", path, "-L", "4", "--key", "ids")
    packing = told["packing"]
    assert (packing["documents"], packing["tokens"]) == (9, 45)
    assert packing["concat"] == {"samples": 11, "tail": 1, "documents_cut": cut_in_natural_order(SIZES, 4)}
    best = sk.open(path).pack(4, seed=0, key="ids", method="best_fit")
    assert packing["best_fit"]["samples"] == len(best)
    assert packing["python"] == f"sk.open({str(path)!r}).pack(4, seed=0, key='ids')"
    shown = output("info", path, "-L", "5", "--key", "ids").decode()
    assert (
        "token ids      45 in 9 documents\nconcat at 5    9 samples; 0 tokens (0.0 %) in the tail; " in shown
    )
    (sample,) = documents("get", path, "3", "--key", "ids", "--sample", "4")
    assert sample["record"]["tokens"] == sk.open(path).pack(4, seed=0, key="ids")[3]["tokens"].tolist()
    tokenizer = str(folder / "tokenizer.json")
    decoded = output("get", path, "3", "--key", "ids", "--tokenizer", tokenizer)
    assert decoded.decode() == sk.from_sequence([0]).map(lambda _: trained_text([3, 3, 3, 3]))[0] + "\n"


def trained_text(ids: list[int]) -> str:
    from tokenizers import Tokenizer

    return str(Tokenizer.from_str(trained_json()).decode(ids, skip_special_tokens=False))


def test_documents_are_decoded(folder: Path) -> None:
    told = output("get", "tokens", "3", "-1", "--decode", cwd=folder).decode()
    assert told == f"{TEXTS[3]}{EOS}\n{TEXTS[-1]}{EOS}\n"
    (one,) = documents("get", "tokens", "35", "--decode", cwd=folder)
    assert one["text"] == TEXTS[35] + EOS
    assert one["record"]["tokens"][-1] == 0
    source = one["location"]["source"]
    assert (source["path"], source["row"]) == (str(folder / "corpus" / "1.jsonl"), 5)
    line = (folder / "corpus" / "1.jsonl").read_bytes()[source["offset"] :][: source["length"]]
    assert json.loads(line)["text"] == TEXTS[35]
    plain = ("get", "tokens:plain.bin", "35", "--set", "dtype=uint16", "--set", "eos=0", "--tokenizer")
    for tokenizer in ("tokenizer.json", "tokens"):
        assert output(*plain, tokenizer, cwd=folder).decode() == f"{TEXTS[35]}{EOS}\n"


def test_a_tokenizer_that_did_not_make_the_ids_decodes_nothing(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "tokens", tmp_path / "tokens")
    (tmp_path / "tokens" / "tokenizer.json").write_text(trained_json(size=500), encoding="utf-8")
    refused = run("get", "tokens", "3", "--decode", cwd=tmp_path)
    assert refused.returncode == 3
    assert b"tokenizer.json' is not the tokenizer that made the ids" in refused.stderr
    ranks = {bytes([number]): number for number in range(256)}
    encoding = tiktoken.Encoding("bytes", pat_str=r".", mergeable_ranks=ranks, special_tokens={})
    texts = sk.from_sequence([{"text": "abc"}])
    sk.tokenize(texts, to=tmp_path / "own", tokenizer=encoding, jobs=1)
    unnamed = run("get", "own", "0", "--decode", cwd=tmp_path)
    assert unnamed.returncode == 2
    assert b"'bytes': it has gpt2" in unnamed.stderr
    assert b"with --tokenizer" in unnamed.stderr


@pytest.mark.parametrize("method", ["concat", "best_fit"])
def test_packed_samples_are_decoded(folder: Path, method: str) -> None:
    command = ("get", "tokens", "1", "-1", "--sample", "32", "--seed", "7", "--method", method)
    ds = sk.open(folder / "tokens").pack(32, seed=7, method=method)  # type: ignore[arg-type]
    records = documents(*command, cwd=folder)
    assert [record["record"]["tokens"] for record in records] == [
        ds[row]["tokens"].tolist() for row in (1, -1)
    ]
    shown = output(*command, "--decode", cwd=folder).decode()
    for sample in documents(*command, "--decode", cwd=folder):
        for piece in sample["pieces"]:
            assert piece["location"]["source"]["row"] == piece["document"] % 30
            ids = sk.open(folder / "tokens")[piece["document"]]["tokens"]
            assert piece["document_tokens"] == ids.size
            text = trained_text(ids[piece["start"] : piece["start"] + piece["tokens"]].tolist())
            assert piece["text"] == text
            assert f"\n{text}\n" in shown
            assert f"{piece['document'] // 30}.jsonl, record {piece['document'] % 30}" in shown


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (["get", "plain.bin", "0", "--set", "dtype=uint16", "--decode"], 2, b"is not a token store"),
        (["get", "corpus", "3", "--decode"], 2, b"has no column 'tokens'"),
        (["get", "corpus", "3", "--decode", "--key", "text"], 2, b"makes texts of lists of token ids"),
        (["get", "tokens", "3", "--tokenizer", "no.json"], 4, b"there is no tokenizer at 'no.json'"),
        (["get", "tokens", "60", "--decode"], 4, b"row 60 is out of range"),
        (["get", "tokens", "3", "--seed", "7"], 2, b"--seed is for packed samples"),
        (["get", "tokens", "3000", "--sample", "32"], 4, b"row 3000 is out of range"),
        (["info", "corpus", "--length", "64"], 2, b"--length is for data of tokens"),
        (
            ["info", "corpus", "--set", "dtype=uint16"],
            2,
            b"--set dtype=uint16 is for tokens, and 'corpus' is jsonl",
        ),
        (["info", "plain.bin"], 2, b"does not say of which type"),
        (["info", "plain.bin", "--set", "dtype=text"], 1, b"dtype must be the name of a type"),
        (["verify", "corpus", "--set", "eos=1"], 2, b"--set eos=1 is for tokens, and"),
        (["get", "tokens", "0", "--sample", "32", "--method", "x"], 2, b"takes --method as"),
        (["get", "tokens", "0", "--sample", "100000"], 2, b"makes no sample"),
        (["get", "corpus", "0", "--sample", "32"], 1, b"there is no column 'tokens'"),
        (["info", "corpus", "-L", "32", "--key", "ids"], 1, b"there is no column 'ids'"),
        (["info", "corpus", "--key", "ids"], 2, b"say --length N too"),
        (["export", "tokens", "out", "--as", "tar"], 1, b"cannot be written as tar"),
    ],
)
def test_wrong_arguments(command: list[str], code: int, message: bytes, folder: Path) -> None:
    done = run(*command, cwd=folder)
    assert (done.returncode, done.stdout) == (code, b""), done.stderr
    assert message in done.stderr


def test_other_commands_take_tokens(folder: Path, tmp_path: Path) -> None:
    expected = [document["tokens"].tolist() for document in sk.open(folder / "tokens")]
    output("export", "tokens", tmp_path / "a.jsonl", cwd=folder)
    assert [record["tokens"] for record in sk.open(tmp_path / "a.jsonl")] == expected
    output("export", "tokens", tmp_path / "a.parquet", cwd=folder)
    assert [record["tokens"] for record in sk.open(tmp_path / "a.parquet")] == expected
    for data in ("tokens", "megatron:tokens/part-000000", "tokens:plain.bin"):
        found = documents("doctor", data, cwd=folder)[0]["findings"]
        assert [each["name"] for each in found if each["group"] == "data"] == [
            "files",
            "index",
            "room for it",
        ]


def test_the_source_lines_of_a_step(folder: Path, tmp_path: Path) -> None:
    tk = sk.open(folder / "tokens")
    parts = {"a": tk.pack(32, seed=3), "b": tk.pack(32, seed=4, method="best_fit")}
    data = sk.mix(parts, weights={"a": 0.7, "b": 0.3}, seed=0).shuffle(seed=1)
    loader = sk.Loader(data, batch_size=4)
    next(iter(loader))
    sk.save_state(tmp_path / "states", loader)
    command = ("plan", tmp_path / "states", "--batch-size", "4", "--step", "3")
    (told,) = documents(*command, cwd=folder)
    places = loader.locate(step=3)
    for record, expected in zip(told["records"], places, strict=True):
        for piece, place in zip(record["location"], expected, strict=True):
            assert (piece["row"], piece["offset"], piece["length"]) == (place.row, place.offset, place.length)
            assert piece["source"]["row"] == place.row % 30
            line = (tmp_path / piece["source"]["path"]).read_bytes()[piece["source"]["offset"] :]
            assert json.loads(line.splitlines()[0])["text"] == TEXTS[place.row]
    shown = output(*command, cwd=folder).decode().splitlines()
    assert shown[2].endswith("of record  at byte  of file")
    assert sum(".jsonl" in line for line in shown) == sum(map(len, places))


def test_pipeline_files_of_packed_samples(folder: Path, tmp_path: Path) -> None:
    tk = sk.open(folder / "tokens")
    ds = tk.pack(64, seed=4, method=sk.Packing("best_fit", most=3))
    ds.save(tmp_path / "packed.json")
    ds.shuffle(seed=1).save(tmp_path / "shuffled.json")
    told = documents("get", tmp_path / "packed.json", "0", "--decode")[0]
    plain = tk.pack(64, seed=4, method="best_fit")
    plain.save(tmp_path / "plain.json")
    command = ("get", "tokens", "0", "--sample", "64", "--seed", "4", "--method", "best_fit", "--decode")
    assert documents(*command, cwd=folder) == documents("get", tmp_path / "plain.json", "0", "--decode")
    assert len(told["pieces"]) <= 3
    row = next(row for row, sample in enumerate(ds.shuffle(seed=1)) if 0 in sample["segment_ids"])
    (shuffled,) = documents("get", tmp_path / "shuffled.json", str(row), "--decode")
    sample = ds.shuffle(seed=1)[row]
    text = trained_text(sample["tokens"][sample["segment_ids"] > 0].tolist())
    assert (shuffled["text"], len(shuffled["location"])) == (text, sample["segment_ids"].max())
    done = run("get", tmp_path / "packed.json", "0", "--sample", "32")
    assert (done.returncode, b"the same record in every epoch" in done.stderr) == (2, True)


def test_samples_of_forager(folder: Path, tmp_path: Path) -> None:
    tokenizer = folder / "tokenizer.json"
    sk.tokenize(
        str(folder / "corpus"),
        to=tmp_path / "s",
        tokenizer=tokenizer,
        eos=EOS,
        jobs=1,
        store=sk.formats.TokenStore(sample_size=16),
    )
    (told,) = documents("info", tmp_path / "s")
    assert told["documents"] == lengths(folder).sum() // 16
    assert (told["store"]["eos"], told["store"]["tokenizer"]["engine"]) == (0, "hf")
    done = run("get", tmp_path / "s", "0", "--decode")
    assert (done.returncode, b"has no copy of its tokenizer" in done.stderr) == (2, True)
    decoded = output("get", tmp_path / "s", "0", "--tokenizer", tokenizer).decode()
    assert decoded == trained_text(sk.open(tmp_path / "s")[0]["tokens"].tolist()) + "\n"


def test_samples_with_sentinels_are_decoded(folder: Path, tmp_path: Path) -> None:
    fim = sk.Fim(rate=1, prefix=1, suffix=2, middle=3)
    ds = sk.open(folder / "tokens").pack(64, seed=4, fim=fim)
    ds.save(tmp_path / "fim.json")
    (told,) = documents("get", tmp_path / "fim.json", "0", "--decode")
    places = ds.locate(0)
    assert [piece["location"]["row"] for piece in told["pieces"]] == [place.row for place in places]
    for piece, place in zip(told["pieces"], places, strict=True):
        ids = sk.open(folder / "tokens")[place.row]["tokens"][piece["start"] :][: piece["tokens"]]
        assert piece["text"] == trained_text(ids.tolist())
    ds.select_columns(["positions"]).save(tmp_path / "narrow.json")
    done = run("get", tmp_path / "narrow.json", "0", "--decode")
    assert (done.returncode, b"has no column 'tokens'" in done.stderr) == (2, True)


def test_a_state_of_packed_samples_says_how_far_the_run_is(folder: Path, tmp_path: Path) -> None:
    tk = sk.open(folder / "tokens")
    for name, ds in {"pack": tk.pack(32, seed=3), "windows": tk.windows(32)}.items():
        loader = sk.Loader(ds.shuffle(seed=1), batch_size=4)
        next(iter(loader))
        sk.save_state(tmp_path / name, loader)
        (told,) = documents("state", "show", tmp_path / name)
        assert (told["position"], told["records"], told["row"]) == (4, len(ds), 4)


def test_the_source_lines_of_a_step_of_a_blend_of_megatron(folder: Path, tmp_path: Path) -> None:
    prefix = str(folder / "tokens" / "part-000000")
    made = gpt_datasets(
        [0.3, prefix, 0.7, sk.open(folder / "tokens")[10:]],
        split="1,0,0",
        sequence_length=16,
        samples=(20, 0, 0),
        seed=1,
    )
    loader = sk.Loader(made["train"], batch_size=2)
    next(iter(loader))
    sk.save_state(tmp_path / "states", loader)
    (told,) = documents("plan", tmp_path / "states", "--batch-size", "2", "--step", "5")
    for record, places in zip(told["records"], loader.locate(step=5), strict=True):
        assert [piece["source"]["row"] for piece in record["location"]] == [
            place.row % 30 for place in places
        ]
