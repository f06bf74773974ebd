from __future__ import annotations

import gzip
import io
import tarfile
from typing import TYPE_CHECKING

import numpy as np
from tests.cli.command import Corpus, documents, output

if TYPE_CHECKING:
    from pathlib import Path


def test_info_tells_what_a_dataset_is(corpus: Corpus) -> None:
    (told,) = documents("info", "corpus", cwd=corpus.folder.parent)
    lengths = np.array([len(line) + 1 for line in corpus.lines])
    index = sum(path.stat().st_size for path in (corpus.folder / ".seekable").iterdir())
    p50, p95, p99 = np.percentile(lengths, [50, 95, 99], method="inverted_cdf")
    assert told == {
        "schema": 1,
        "path": "corpus",
        "format": "jsonl",
        "files": 3,
        "records": 120,
        "bytes": lengths.sum(),
        "record_bytes": {
            "mean": lengths.mean(),
            "min": lengths.min(),
            "p50": p50,
            "p95": p95,
            "p99": p99,
            "max": lengths.max(),
        },
        "compression": None,
        "index": {
            "folder": str(corpus.folder / ".seekable"),
            "bytes": index,
            "files_indexed": 3,
            "was_up_to_date": False,
        },
    }
    (again,) = documents("info", "corpus", cwd=corpus.folder.parent)
    assert (again["index"]["files_indexed"], again["index"]["was_up_to_date"]) == (0, True)


def test_info_for_people_is_a_line_for_each_fact(corpus: Corpus) -> None:
    facts = [line.split(None, 1) for line in output("info", corpus.folder).decode().splitlines()]
    assert [name for name, _ in facts] == ["path", "format", "files", "records", "bytes", "record", "index"]
    assert facts[3][1] == "120"
    assert facts[6][1].endswith(", 3 files indexed now")
    again = output("info", corpus.folder).decode().splitlines()
    assert again[6].endswith(", up to date")


def test_info_tells_how_files_are_compressed(corpus: Corpus) -> None:
    content = b"".join(line + b"\n" for line in corpus.lines)
    path = corpus.folder / "all.jsonl.gz"
    path.write_bytes(gzip.compress(content))
    (told,) = documents("info", path)
    (points,) = (corpus.folder / ".seekable").glob("points-*")
    assert (told["records"], told["bytes"]) == (120, path.stat().st_size)
    assert told["compression"] == {
        "files": {"gz": 1},
        "blocks": 1,
        "content_bytes": len(content),
        "points_bytes": points.stat().st_size,
    }
    (line,) = [line for line in output("info", path).decode().splitlines() if line.startswith("compression")]
    assert "1 gzip" in line
    assert "entered at 1 point" in line
    (mixed,) = documents("info", f"{corpus.folder}/*")
    assert (mixed["records"], mixed["compression"]["files"]) == (240, {"plain": 3, "gz": 1})


def test_an_empty_dataset_has_no_lengths(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    (told,) = documents("info", tmp_path)
    assert (told["records"], told["record_bytes"]) == (0, None)
    assert b"no record" in output("info", tmp_path)


def test_a_pickled_field_keeps_no_command_from_an_archive(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, payload in (("a.pyd", b"\x80\x04K\x03."), ("a.txt", b"text")):
            member = tarfile.TarInfo(name)
            member.size = len(payload)
            archive.addfile(member, io.BytesIO(payload))
    (indexed,) = documents("index", tmp_path, "--json")
    assert indexed["datasets"][0]["records"] == 1
    assert indexed["datasets"][0]["files_indexed"] == 1
    (info,) = documents("info", tmp_path, "--json")
    assert info["fields"] == {"pyd": {"bytes": 5, "members": 1}, "txt": {"bytes": 4, "members": 1}}
    (line,) = documents("get", tmp_path, "0")
    assert line["record"]["txt"] == "text"
    assert line["record"]["pyd"].startswith("<5 bytes")
