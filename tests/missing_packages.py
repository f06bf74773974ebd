"""What is said where an optional package is missing: a program that tests/test_missing_packages.py runs.

    python -m tests.missing_packages FOLDER

FOLDER has the inputs that `write_inputs` makes. No optional package is found. Printed is a JSON object: what
each way to ask for one answers.
"""

from __future__ import annotations

import importlib
import io
import json
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MODULES = {
    "parquet": ("pyarrow",),
    "hub": ("huggingface_hub", "pyarrow"),
    "remote": ("obstore", "fsspec"),
    "gzip": ("indexed_gzip",),
    "zstd": ("zstandard",),
    "audio": ("soundfile", "lilcom"),
    "images": ("PIL",),
    "cbor": ("cbor2",),
    "energon": ("yaml",),
    "tokens": ("tokenizers",),
    "chat": ("tokenizers", "jinja2"),
    "tiktoken": ("tiktoken",),
    "gigatoken": ("gigatoken",),
    "sentencepiece": ("sentencepiece",),
    "torch": ("torch",),
    "lhotse": ("lhotse", "torch"),
    "ray": ("ray", "pyarrow"),
    "dask": ("distributed",),
    "view": ("starlette", "uvicorn", "jinja2"),
}
"""By extra the modules of the packages that it installs."""


def write_inputs(folder: Path) -> None:
    """Write the files that are asked for; none of them is read before its package is missed."""
    import pyarrow as pa
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    (folder / "a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    (folder / "a.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00" + bytes(2 << 20))
    (folder / "a.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(100))
    (folder / "a.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    with pa.ipc.new_file(folder / "a.arrow", (table := pa.table({"text": ["one"]})).schema) as file:
        file.write(table)
    letters = {letter: number for number, letter in enumerate(pre_tokenizers.ByteLevel.alphabet())}
    tokenizer = Tokenizer(models.BPE(vocab=letters, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "words.model").write_bytes(b"\n\x0e\n\x05<unk>" + bytes(20))
    for suffix in ("flac", "llc", "png", "cbor", "pth"):
        with tarfile.open(folder / f"{suffix}.tar", "w") as archive:
            member = tarfile.TarInfo(f"000.{suffix}")
            member.size = 5
            archive.addfile(member, io.BytesIO(b"12345"))
    (folder / "energon" / ".nv-meta").mkdir(parents=True)
    (folder / "energon" / "shard.tar").write_bytes((folder / "png.tar").read_bytes())
    (folder / "energon" / ".nv-meta" / ".info.json").write_text('{"shard_counts": {"shard.tar": 1}}')
    (folder / "energon" / ".nv-meta" / "split.yaml").write_text("split_parts: {train: [shard.tar]}")
    (folder / "shar").mkdir()
    cut = {"id": "a", "start": 0, "duration": 1, "channel": 0, "type": "MonoCut"}
    (folder / "shar" / "cuts.000000.jsonl").write_text(json.dumps(cut) + "\n")


def ways(sk: Any, folder: Path) -> dict[str, Callable[[], object]]:
    """Return the ways to ask for an optional package, by its extra and a few words."""
    lines = sk.open(folder / "a.jsonl")

    def opened(name: str, **options: Any) -> Callable[[], object]:
        return lambda: sk.open(folder / name, **options)[0]

    def tokenized(engine: str) -> Callable[[], object]:
        store = sk.formats.TokenStore(engine=engine)
        return lambda: sk.tokenize(
            lines, to=folder / engine, tokenizer=folder / "tokenizer.json", eos=0, store=store
        )

    def module(name: str) -> Callable[[], Any]:
        return lambda: importlib.import_module(f"seekable.integrations.{name}")

    return {
        "parquet: open": opened("a.parquet"),
        "parquet: open arrow": opened("a.arrow"),
        "parquet: write": lambda: lines.write_parquet(folder / "written"),
        "parquet: table": lines.to_arrow,
        "parquet: batches": lambda: list(lines.batches("arrow", size=2)),
        "parquet: schema": lambda: lines.schema,
        "hub: open": lambda: sk.open("hf:org/data:train"),
        "remote: open": lambda: sk.open("s3://bucket/a.jsonl"),
        "remote: another scheme": lambda: sk.open("sftp://host/a.jsonl"),
        "remote: save": lambda: lines.save("gs://bucket/pipeline.json"),
        "gzip: open": opened("a.jsonl.gz"),
        "zstd: open": opened("a.jsonl.zst"),
        "audio: open": opened("flac.tar", decode="audio"),
        "audio: features": opened("llc.tar", decode={"llc": "lilcom"}),
        "images: open": opened("png.tar", decode="rgb8"),
        "cbor: open": opened("cbor.tar"),
        "torch: open": opened("pth.tar"),
        "energon: open": lambda: sk.open(f"energon:{folder}/energon:train"),
        "chat: template": lambda: sk.Chat(folder / "tokenizer.json", template="{{ messages }}"),
        "tokens: tokenize": tokenized("hf"),
        "tiktoken: tokenize": tokenized("tiktoken"),
        "gigatoken: tokenize": tokenized("gigatoken"),
        "sentencepiece: tokenize": lambda: sk.tokenize(
            lines, to=folder / "words", tokenizer=folder / "words.model"
        ),
        "torch: integration": module("torch"),
        "lhotse: integration": module("lhotse"),
        "lhotse: open": lambda: sk.open(folder / "shar", decode="lhotse")[0],
        "ray: integration": lambda: module("ray")().RayExecutor(),
        "ray: data": lambda: module("ray")().sk_source(lines),
        "dask: integration": lambda: module("dask")().DaskExecutor("a:1"),
        "view: data": lambda: sk.view(lines),
    }


def main(folder: Path) -> None:
    """Ask in each way, and print the answers."""
    for names in MODULES.values():
        # To Python such a module is not there.
        sys.modules.update(dict.fromkeys(names))  # type: ignore[arg-type]
    sk = importlib.import_module("seekable")
    answers = {}
    for name, ask in ways(sk, folder).items():
        if name == "tiktoken: tokenize":
            del sys.modules["tokenizers"]  # It checks the engines that are asked for next.
        try:
            found: object = ask()
        except sk.MissingDependency as error:
            answers[name] = str(error)
        except Exception as error:  # noqa: BLE001 - the test shows it
            answers[name] = f"{type(error).__name__}: {error}"
        else:
            answers[name] = f"no error: {found!r:.200}"
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
