"""A small corpus of every format that is read, for tests that open each of them from each kind of place."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.formats import forager as forager_files
from tests.formats.index_packs import Packed, pack_bytes
from tests.formats.lhotse_indexes import index_of_lines
from tests.formats.shar.shar_folders import write_shar
from tests.formats.tokens.folder_writers import write_forager, write_litdata, write_mds, write_safetensors
from tests.formats.tokens.token_formats import BOS, EOS, FORMS, Form
from tests.storage.compressing import compressed

import seekable as sk
from seekable import kaldi
from seekable.formats.table import card_named
from seekable.storage.compression import COMPRESSED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

ROWS = 11

DOCUMENTS = [np.arange(8 + row, 8 + 3 * row) for row in range(ROWS)]


@dataclass(frozen=True)
class Case:
    """A corpus, and the way in which it is opened."""

    write: Callable[[Path], object]
    """Writes the files into a folder."""

    asked: Any
    """What is opened, where ``DIR`` is the folder."""

    options: dict[str, Any] = field(default_factory=dict)
    """Other arguments of ``sk.open``."""

    near: bool = False
    """True if files name others by paths that begin at the current folder."""


def source_of(asked: Any, root: str) -> Any:
    """Return what is opened in a folder."""
    if isinstance(asked, dict):
        return {name: source_of(each, root) for name, each in asked.items()}
    if isinstance(asked, list):
        return [source_of(each, root) for each in asked]
    return asked.replace("DIR", root)


def _lines(name: str, lines: Iterable[str]) -> Callable[[Path], None]:
    """Return what writes two files of lines, the second with the name of the first and a number."""
    several = list(lines)

    def write(folder: Path) -> None:
        stem, dot, suffix = name.partition(".")
        for number, some in enumerate((several[:7], several[7:])):
            (folder / f"{stem}{number}{dot}{suffix}").write_text("".join(some))

    return write


def _separated(name: str, mark: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        rows = [f'{row}{mark}"text {row}"\n' for row in range(ROWS)]
        (folder / name).write_text(f"id{mark}text\n" + "".join(rows))

    return write


def _table(rows: int = ROWS) -> pa.Table:
    return pa.table({"id": list(range(rows)), "text": [f"text {row}" for row in range(rows)]})


def _parquet(folder: Path) -> None:
    pq.write_table(_table(), folder / "a.parquet", row_group_size=4)
    pq.write_table(_table(3), folder / "b.parquet")


def _arrow(folder: Path) -> None:
    with pa.OSFile(str(folder / "a.arrow"), "wb") as file, pa.ipc.new_file(file, _table().schema) as writer:
        writer.write_table(_table(), max_chunksize=4)


def _hive(folder: Path) -> None:
    for year in (2024, 2025):
        (folder / f"year={year}").mkdir()
        pq.write_table(_table(5), folder / f"year={year}" / "a.parquet")


def _saved(folder: Path) -> None:
    """Write what ``datasets.Dataset.save_to_disk`` does."""
    names = [f"data-{number:05}-of-00002.arrow" for number in range(2)]
    for name in names:
        with pa.OSFile(str(folder / name), "wb") as file, pa.ipc.new_stream(file, _table().schema) as writer:
            writer.write_table(_table(6))
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (folder / "dataset_info.json").write_text("{}")


def write_tar(path: Path, samples: Iterable[tuple[str, dict[str, str]]]) -> None:
    """Write a tar file of samples: keys, and the text of each field."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as file:
        for key, fields in samples:
            for name, text in fields.items():
                member = tarfile.TarInfo(f"{key}.{name}")
                member.size = len(text)
                file.addfile(member, io.BytesIO(text.encode()))


def _samples(first: int, stop: int, *names: str) -> list[tuple[str, dict[str, str]]]:
    return [(f"s{row:03}", {name: f"{name} {row}" for name in names}) for row in range(first, stop)]


def _tar(folder: Path) -> None:
    for shard in range(2):
        write_tar(folder / f"s{shard}.tar", _samples(6 * shard, 6 * shard + 6, "txt", "jpg"))


def _siblings(folder: Path) -> None:
    for side, name in (("a", "jpg"), ("b", "txt")):
        (folder / side).mkdir()
        write_tar(folder / side / "0.tar", _samples(0, ROWS, name))


def _energon(folder: Path) -> None:
    _tar(folder)
    (folder / ".nv-meta").mkdir()
    counts = {"shard_counts": {"s0.tar": 6, "s1.tar": 6}}
    (folder / ".nv-meta/.info.json").write_text(json.dumps(counts))
    splits = "exclude: [s1.tar/s008]\nsplit_parts:\n  train: ['s{0..1}.tar']\n"
    (folder / ".nv-meta/split.yaml").write_text(splits)


def _wids(folder: Path) -> None:
    _tar(folder)
    shards = [{"url": f"s{number}.tar", "nsamples": 6} for number in (1, 0)]
    (folder / "index.json").write_text(json.dumps({"__kind__": "wids-shard-index-v1", "shardlist": shards}))


def _matrices() -> list[tuple[str, Any]]:
    return [(f"utt{row:02}", np.full((row + 1, 3), row, np.float32)) for row in range(ROWS)]


def _archive(folder: Path) -> None:
    with kaldi.Writer(f"ark:{folder}/feats.ark", "matrix") as writer:
        for key, value in _matrices():
            writer.write(key, value)


def _script(folder: Path) -> None:
    """Write an archive, and a script that names it by a path that begins at the folder."""
    with kaldi.Writer(f"ark,scp:{folder}/feats.ark,{folder}/whole.scp", "matrix") as writer:
        for key, value in _matrices():
            writer.write(key, value)
    text = (folder / "whole.scp").read_text().replace(f"{folder}/", "")
    (folder / "whole.scp").unlink()
    (folder / "feats.scp").write_text(text.replace("\n", "[0:0]\n", 1))


def _directory(folder: Path) -> None:
    _script(folder)
    keys = [key for key, _ in _matrices()]
    (folder / "feats.scp").write_text((folder / "feats.scp").read_text().replace("[0:0]", ""))
    (folder / "text").write_text("".join(f"{key} words of {key}\n" for key in keys))
    (folder / "utt2spk").write_text("".join(f"{key} utt\n" for key in keys))
    (folder / "spk2utt").write_text(f"utt {' '.join(keys)}\n")


def _json_lines(folder: Path, name: str = "a.jsonl", rows: int = ROWS) -> bytes:
    content = b"".join(b'{"id": %d}\n' % row for row in range(rows))
    (folder / name).write_bytes(content)
    return content


def _with_lhotse_index(folder: Path) -> None:
    (folder / "a.jsonl.idx").write_bytes(index_of_lines(_json_lines(folder)))


def _with_forager_index(folder: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        _json_lines(folder, name)
    forager_files.write_index(folder, ["a.jsonl", "b.jsonl"])


def _pack(folder: Path) -> None:
    files = [(name, index_of_lines(_json_lines(folder, name))) for name in ("b.jsonl", "a.jsonl")]
    (folder / "corpus.idxpack").write_bytes(pack_bytes(Packed("jsonl", files)))


def _arrays(dtype: str = "uint16") -> list[Any]:
    return [document.astype(dtype) for document in DOCUMENTS[1:]]


def _mds(folder: Path) -> None:
    samples = [{"tokens": document} for document in _arrays()]
    write_mds(folder, {"tokens": "ndarray:uint16"}, [samples[:4], samples[4:]])


def _forager_tokens(folder: Path) -> None:
    samples = [{"tokens": np.arange(row, row + 4, dtype="uint16")} for row in range(ROWS)]
    write_forager(folder, {"0.bin": samples[:4], "1.bin": samples[4:]}, with_schema=True)


def _token_store(folder: Path) -> None:
    rows = [{"tokens": document.tolist(), "loss_mask": [1] * len(document)} for document in DOCUMENTS]
    sk.from_sequence(rows, version=1).write_tokens(
        folder, jobs=1, store=sk.formats.TokenStore(dtype="uint16", rows_per_file=5, align=["loss_mask"])
    )


def _of_form(form: Form) -> Case:
    """Return the case of a form of files of tokens."""
    ends = {"eos": [EOS], "bos": []}.get(form.needs, [])
    begins = [BOS] if form.needs == "bos" else []
    documents = [np.array([*begins, *document.tolist(), *ends]) for document in DOCUMENTS]

    def write(folder: Path) -> None:
        for name, data in form.write(documents).items():
            (folder / name).write_bytes(data)

    return Case(write, form.asked, form.options)


def _compressed(case: Case, suffix: str, kind: Any) -> Case:
    """Return a case whose files with a suffix are compressed."""

    def write(folder: Path) -> None:
        case.write(folder)
        for path in sorted(folder.rglob(f"*{suffix}")):
            path.with_name(f"{path.name}.{kind}").write_bytes(compressed([path.read_bytes()], kind))
            path.unlink()

    return Case(write, case.asked.replace(suffix, f"{suffix}.{kind}"), case.options, case.near)


_JSON = [f'{{"id": {row}, "text": "{"x" * row}"}}\n' for row in range(ROWS)]
_TEXT = [f"line {row}\n" for row in range(ROWS)]

PLAIN: dict[str, tuple[Case, str]] = {
    "jsonl": (Case(_lines("a.jsonl", _JSON), "DIR/*.jsonl", {"key": "id"}), ".jsonl"),
    "text": (Case(_lines("a.txt", _TEXT), "DIR/*.txt"), ".txt"),
    "csv": (Case(_separated("a.csv", ","), "DIR/*.csv"), ".csv"),
    "tsv": (Case(_separated("a.tsv", "\t"), "DIR/*.tsv"), ".tsv"),
    "csv-semicolon": (Case(_separated("a.csv", ";"), "DIR/*.csv", {"format": "csv-semicolon"}), ".csv"),
    "parquet": (Case(_parquet, "DIR"), ".parquet"),
    "arrow": (Case(_arrow, "DIR/a.arrow"), ".arrow"),
    "ark": (Case(_archive, "ark:DIR/*.ark"), ".ark"),
    "scp": (Case(_script, "scp:DIR/*.scp", near=True), ".scp"),
    "kaldi-directory": (Case(_directory, "kaldi:DIR", near=True), ""),
    "tar": (Case(_tar, "DIR/*.tar"), ".tar"),
    "tokens": (_of_form(FORMS["megatron"]), ".bin"),
}
"""A case for each format, and the suffix of its data files."""

CASES: dict[str, Case] = {
    **{name: case for name, (case, _) in PLAIN.items()},
    **{
        f"{name}.{kind}": _compressed(case, suffix, kind)
        for name, (case, suffix) in PLAIN.items()
        if card_named(name).compressible
        for kind in COMPRESSED
    },
    **{f"tokens: {name}": _of_form(form) for name, form in FORMS.items()},
    "lines as columns": Case(_lines("a.jsonl", _JSON), "DIR/*.jsonl", {"decode": "numpy"}),
    "csv as columns": Case(_separated("a.csv", ","), "DIR/*.csv", {"decode": "arrow"}),
    "folder of lines": Case(_lines("a.jsonl", _JSON), "DIR"),
    "list of lines": Case(_lines("a.jsonl", _JSON), ["DIR/a1.jsonl", "DIR/a0.jsonl"]),
    "braces": Case(_lines("a.jsonl", _JSON), "DIR/a{0..1}.jsonl"),
    "column of text": Case(_lines("a.txt", _TEXT), "txt:DIR/*.txt:text"),
    "hive": Case(_hive, "DIR", {"format": sk.formats.Tables(partitions="hive")}),
    "saved by datasets": Case(_saved, "DIR"),
    "siblings": Case(_siblings, {"image": "DIR/a/*.tar", "caption": "DIR/b/*.tar"}),
    "energon": Case(_energon, "energon:DIR:train"),
    "wids": Case(_wids, "wids:DIR/index.json"),
    "shar": Case(lambda folder: write_shar(folder, [5, 6]), "shar:DIR"),
    "folder of shar": Case(lambda folder: write_shar(folder, [5, 6], suffix="jsonl.gz"), "DIR"),
    "fields of shar": Case(
        lambda folder: write_shar(folder, [5, 6]), {"cuts": "DIR/cuts.*", "recording": "DIR/recording.*"}
    ),
    "cuts of shar": Case(lambda folder: write_shar(folder, [5]), {"cuts": "DIR/cuts.*", "lang": "DIR"}),
    "with Lhotse's index": Case(_with_lhotse_index, "DIR"),
    "with Forager's index": Case(_with_forager_index, "DIR"),
    "idxpack": Case(_pack, "idxpack:DIR/corpus.idxpack:0"),
    "named idxpack": Case(_pack, "DIR/corpus.idxpack"),
    "litdata": Case(lambda folder: write_litdata(folder, [_arrays()[:4], _arrays()[4:]]), "DIR"),
    "mds": Case(_mds, "DIR"),
    "forager": Case(_forager_tokens, "DIR"),
    "safetensors": Case(
        lambda folder: write_safetensors(folder / "a.safetensors", {"tokens": np.ones((ROWS, 4), "int32")}),
        "DIR/a.safetensors",
    ),
    "token store": Case(_token_store, "DIR"),
}
"""All cases by name."""
