"""Folders of tokens that were torn, cut or mixed up: right tokens, or an error that names a file."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.formats.tokens.folder_writers import (
    as_arrays,
    write_forager,
    write_litdata,
    write_mds,
    write_safetensors,
)
from tests.thrift import some

import seekable as sk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

Documents = list[list[int]]


def litdata(folder: Path, shards: Sequence[Documents]) -> None:
    write_litdata(folder, [as_arrays(documents, "uint16") for documents in shards])


def mds(encoding: str) -> Callable[[Path, Sequence[Documents]], None]:
    def write(folder: Path, shards: Sequence[Documents]) -> None:
        columns = {"tokens": encoding, "text": "str"} if encoding == "ndarray" else {"tokens": encoding}
        rows = [[{"tokens": array, "text": "ab"} for array in as_arrays(each, "uint16")] for each in shards]
        write_mds(folder, columns, rows)

    return write


def forager(folder: Path, shards: Sequence[Documents]) -> None:
    folder.mkdir()
    files = {
        f"{n}.bin": [{"tokens": array} for array in as_arrays(d, "uint16")] for n, d in enumerate(shards)
    }
    write_forager(folder, files)


def forager_with_arrays(folder: Path, shards: Sequence[Documents]) -> None:
    folder.mkdir()
    files = {
        f"{n}.bin": [{"tokens": a, "mask": a.astype(np.uint8)} for a in as_arrays(documents, "uint16")]
        for n, documents in enumerate(shards)
    }
    write_forager(folder, files, with_schema=True)


pytestmark = pytest.mark.filterwarnings("ignore:.*the tokens are read .column 'tokens'., and not 'text'")

KINDS: dict[str, Callable[[Path, Sequence[Documents]], None]] = {
    "litdata": litdata,
    "mds of one length": mds("ndarray:uint16:3"),
    "mds of any length": mds("ndarray:uint16"),
    "mds of several columns": mds("ndarray"),
    "forager": forager,
    "forager with arrays": forager_with_arrays,
}

OF_ONE_LENGTH = ("mds of one length", "forager with arrays")


def documents_of(kind: str, random: Random) -> list[Documents]:
    """Return documents for two to four files, no two files with equal documents."""
    size = 3 if kind in OF_ONE_LENGTH else None
    return [
        [
            [random.randrange(1 << 16) for _ in range(size or random.randint(1, 9))]
            for _ in range(random.randint(1, 6))
        ]
        for _ in range(random.randint(2, 4))
    ]


def cut(paths: list[Path], random: Random, _: Path) -> bool:
    path = random.choice(paths)
    os.truncate(path, random.randrange(path.stat().st_size))
    return True


def grown(paths: list[Path], random: Random, _: Path) -> bool:
    with random.choice([path for path in paths if path.suffix != ".json"]).open("ab") as file:
        file.write(random.randbytes(random.randint(1, 30)))
    return True


def torn(paths: list[Path], random: Random, _: Path) -> bool:
    """Write zeros over the head of a file, as a page that never came to the disk."""
    heads = [path for path in paths if path.suffix == ".mds" or path.name.startswith("chunk")]
    path = random.choice(heads or paths)
    data = path.read_bytes()
    path.write_bytes(bytes(min(len(data), 64)) + data[64:])
    return False


def lost(paths: list[Path], random: Random, _: Path) -> bool:
    path = random.choice(paths)
    path.unlink()
    return path.name != "sample_schema.json"


def swapped(paths: list[Path], random: Random, _: Path) -> bool:
    data = [path for path in paths if path.suffix in (".bin", ".mds") and path.name != "sample_locations.bin"]
    one, other = random.sample(data, 2)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    return False


def mixed_up(paths: list[Path], random: Random, another: Path) -> bool:
    """Replace a file by that of another dataset."""
    path = random.choice([path for path in paths if (another / path.name).exists()] or paths)
    if (another / path.name).exists():
        shutil.copyfile(another / path.name, path)
    return False


DAMAGES = (cut, grown, torn, lost, swapped, mixed_up)


def in_files(kind: str, folder: Path) -> list[Documents] | None:
    """Return the documents of each file of data as a plain reader finds them; None if it fails."""
    found = []
    try:
        if kind.startswith("forager"):
            names = (folder / "index" / "file_location.txt").read_text().split()
            places = np.frombuffer((folder / "index" / "sample_locations.bin").read_bytes(), "<u8").reshape(
                -1, 3
            )
            width = 3 if "arrays" in kind and (folder / "index" / "sample_schema.json").exists() else 2
            for number, name in enumerate(names):
                data = (folder / name).read_bytes()
                spans = [(int(a), int(a) + int(n) // width * 2) for f, a, n in places if f == number]
                found.append([np.frombuffer(data[a:b], "<u2").tolist() for a, b in spans])
            return found
        index = json.loads((folder / "index.json").read_text())
        entries = index["chunks"] if kind == "litdata" else index["shards"]
        for entry in entries:
            name = entry["filename"] if kind == "litdata" else entry["raw_data"]["basename"]
            data = (folder / name).read_bytes()
            offsets = np.frombuffer(data[4 : 8 + 4 * int.from_bytes(data[:4], "little")], "<u4").tolist()
            items = [data[a:b] for a, b in itertools.pairwise(offsets)]
            heads = {"mds of any length": 6, "mds of several columns": 13}
            found.append([np.frombuffer(item[heads.get(kind, 0) :], "<u2").tolist() for item in items])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found


def opened(folder: Path, kind: str) -> list[list[int]] | sk.SeekableError:
    try:
        ds = sk.open(folder, format=sk.formats.Tokens(dtype="uint16" if kind == "forager" else None))
        return [record["tokens"].tolist() for record in ds]
    except sk.SeekableError as error:
        return error


def check_damages(tmp_path: Path, kind: str, random: Random, times: int) -> None:
    """Damage folders at random, and compare what is opened with what the files hold."""
    refused = 0
    for number in range(times):
        folder, another = tmp_path / f"{number}", tmp_path / f"{number}-another"
        shards = documents_of(kind, random)
        KINDS[kind](folder, shards)
        KINDS[kind](another, documents_of(kind, random))
        whole = opened(folder, kind)
        assert whole == [document for shard in shards for document in shard]
        paths = sorted(path for path in folder.rglob("*") if path.is_file() and ".seekable" not in path.parts)
        damage = DAMAGES[number % len(DAMAGES)]
        must_fail = damage(paths, random, another)
        found = opened(folder, kind)
        if isinstance(found, sk.SeekableError):
            refused += 1
            assert str(folder) in str(found), found
            continue
        assert not must_fail, (damage, found)
        plain = in_files(kind, folder)
        assert plain is not None
        assert found == [document for shard in plain for document in shard]
        shutil.rmtree(folder)
    assert refused >= times // 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_folder_gives_right_tokens_or_an_error(kind: str, tmp_path: Path) -> None:
    check_damages(tmp_path, kind, Random(kind), len(DAMAGES))


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_300_damaged_folders(kind: str, tmp_path: Path) -> None:
    check_damages(tmp_path, kind, Random(kind), some(300))


def test_damaged_rows_of_safetensors(tmp_path: Path) -> None:
    path, random = tmp_path / "a.safetensors", Random(0)
    for _ in range(20):
        rows = np.array([[random.randrange(1 << 16) for _ in range(3)] for _ in range(random.randint(1, 9))])
        write_safetensors(path, {"x": rows.astype(np.uint16)})
        os.truncate(path, random.randrange(path.stat().st_size))
        with pytest.raises(sk.errors.CorruptTokens, match=r"a\.safetensors': byte [08]: expected"):
            sk.open(path)
