"""Each call of the library that does heavy work, with ``jobs=`` and ``executor=``, over one small corpus.

Functions that workers call are made inside others, so that they travel by value: workers need no tests.
"""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

from tests.index.corpus import write
from tests.tokens.store_options import gathered

import seekable as sk
from seekable.dataset.verify_data import verify

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 700


def make_corpus(folder: Path) -> Path:
    """Write some files of JSON lines, and return their folder."""
    folder.mkdir(parents=True)
    for number in range(3):
        lines = (
            json.dumps({"id": f"r{row}", "n": row * 7919 % 1009, "text": f"word {row} " * (row % 5)})
            for row in range(number * ROWS, (number + 1) * ROWS)
        )
        write(folder / f"part-{number}.jsonl", "\n".join(lines).encode() + b"\n")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Return the data files below a folder by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def index_files(folder: Path) -> dict[str, bytes]:
    """Return the offsets and keys of an index by name; catalogs and tables hold times."""
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*.u64"))}


def _open(corpus: Path, out: Path, how: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds = sk.open(corpus, key="id", index=sk.Index(folder=out / "index", **how))
    return index_files(out / "index"), ds.fingerprint, ds.key("r1234")


def _filter(corpus: Path, out: Path, how: dict[str, Any]) -> Any:
    def odd(records: list[Any]) -> list[bool]:
        return [record["n"] % 2 == 1 for record in records]

    sk.open(corpus).filter(lambda record: record["n"] % 3 == 0, save=out / "kept.u64", **how)
    sk.open(corpus).filter(odd, size=17, save=out / "odd.u64", **how)
    return contents(out)


def _flatten(corpus: Path, out: Path, how: dict[str, Any]) -> Any:
    sk.open(corpus).flatten(lambda record: record["text"].split(), save=out / "rows.u64", **how)
    return contents(out)


def _sort(corpus: Path, out: Path, how: dict[str, Any]) -> Any:
    sk.open(corpus).sort("n", save=out / "order.u64", **how)
    by_text = sk.open(corpus).sort(lambda record: record["text"][::-1], reverse=True, **how)
    return contents(out), by_text.fingerprint


def _join(corpus: Path, _: Path, how: dict[str, Any]) -> Any:
    left = sk.open(corpus)
    joined = sk.join(left, left.take(100), on="id", suffix="_right", **how)
    return joined.fingerprint, len(joined), joined[5]


def _write(name: str, arguments: dict[str, Any], *, stream: bool) -> Any:
    def cut(record: dict[str, Any]) -> dict[str, Any]:
        whole = {"start": 0.0, "duration": 1.0, "channel": 0, "supervisions": []}
        return {"id": record["id"], **whole, "type": "MonoCut"}

    def call(corpus: Path, out: Path, how: dict[str, Any]) -> Any:
        ds = sk.open(corpus)
        records: Any = ds
        if name == "write_tar":
            records = ds.map(lambda record: {"__key__": record["id"], "txt": record["text"].encode()})
        if name == "write_tokens":
            records = ds.map(lambda record: [record["n"] % 200, 3])
        if name == "write_shar":
            records = ds.map(cut)
        if stream:
            records = records.stream(lanes=3, epochs=1)
        getattr(records, name)(out / "files", **arguments, **how)
        return contents(out / "files")

    return call


def _tokenize(corpus: Path, out: Path, how: dict[str, Any]) -> Any:
    def ids(texts: list[str]) -> list[list[int]]:
        return [list(text.encode()) for text in texts]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sk.tokenize(
            sk.open(corpus),
            to=out / "tokens",
            tokenizer=ids,
            eos=0,
            store=sk.formats.TokenStore(dtype="uint16", rows_per_file=300),
            **how,
        )
    return contents(out / "tokens")


def _documents(corpus: Path) -> Any:
    return sk.open(corpus).map(lambda record: {"ids": [record["n"]] * (1 + record["n"] % 9)})


def _pack(corpus: Path, _: Path, how: dict[str, Any]) -> Any:
    packed = _documents(corpus).pack(16, key="ids", seed=3, **how)
    return packed.fingerprint, len(packed), str(packed[3])


def _windows(corpus: Path, _: Path, how: dict[str, Any]) -> Any:
    cut = _documents(corpus).windows(16, key="ids", **how)
    return cut.fingerprint, len(cut), str(cut[3])


def _verify(corpus: Path, _: Path, how: dict[str, Any]) -> Any:
    sk.open(corpus)
    found = verify(corpus, deep=True, decode=True, **how)
    return found.problems, found.records, found.bytes


_PER_FILE: dict[str, Any] = {"rows_per_file": 500}

_WRITERS: dict[str, dict[str, Any]] = {
    "write": {**_PER_FILE, "format": "jsonl"},
    "write_jsonl": _PER_FILE,
    "write_parquet": _PER_FILE,
    "write_tar": _PER_FILE,
    "write_tokens": gathered(**_PER_FILE, eos=0, dtype="uint16"),
    "write_shar": {"fields": {}, "shard_size": 500},
}

CALLS: dict[str, Any] = {
    "seekable.open": _open,
    "seekable.join": _join,
    "seekable.tokenize": _tokenize,
    "verify": _verify,
    "Dataset.filter": _filter,
    "Dataset.flatten": _flatten,
    "Dataset.sort": _sort,
    "Dataset.pack": _pack,
    "Dataset.windows": _windows,
    **{
        f"{owner}.{name}": _write(name, arguments, stream=owner == "Stream")
        for owner in ("Dataset", "Stream")
        for name, arguments in _WRITERS.items()
    },
}
"""The calls by name; each takes the corpus, an empty folder, and ``jobs=`` or ``executor=``."""
