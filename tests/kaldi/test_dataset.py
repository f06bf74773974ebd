"""Scripts and archives of Kaldi as datasets: every entry, by row and by key, however the table is named."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import seekable as sk
from seekable import kaldi

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 7


def matrices(count: int = ROWS) -> dict[str, Any]:
    """Return matrices of different numbers of rows, by key."""
    rng = np.random.default_rng(5)
    return {f"utt{row}": rng.standard_normal((row + 1, 3)).astype(np.float32) for row in range(count)}


def write_table(
    folder: Path, values: dict[str, Any], holder: str = "matrix", *, name: str = "feats", binary: bool = True
) -> tuple[Path, Path]:
    """Write an archive and a script with its offsets; return both."""
    archive, script = folder / f"{name}.ark", folder / f"{name}.scp"
    own = kaldi.find_holder(holder)
    with archive.open("wb") as file, script.open("w", encoding="utf-8") as lines:
        for key, value in values.items():
            file.write(key.encode() + b" ")
            lines.write(f"{key} {archive}:{file.tell()}\n")
            own.write(file, value, binary=binary)
    return archive, script


def same(one: Any, other: Any) -> bool:
    return bool(one[0] == other[0] and np.array_equal(one[1], other[1]))


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("spec", ["scp:{}.scp", "{}.scp", "ark:{}.ark", "{}.ark", "ark,s,cs,o,bg,t:{}.ark"])
def test_every_way_to_name_a_table_gives_its_entries(tmp_path: Path, spec: str, binary: bool) -> None:  # noqa: FBT001
    values = matrices()
    write_table(tmp_path, values, binary=binary)
    ds = sk.open(
        spec.format(tmp_path / "feats"), format=sk.formats.Kaldi(holder=None if binary else "matrix")
    )
    assert [key for key, _ in ds] == list(values)
    for row, (key, value) in enumerate(values.items()):
        assert same(ds.key(key), ds[row])
        assert ds[row][0] == key
        np.testing.assert_allclose(ds[row][1], value, rtol=0 if binary else 1e-5)
        assert ds[row][1].flags.writeable
    copy: sk.Dataset = pickle.loads(pickle.dumps(ds))
    assert same(copy[3], ds[3])
    assert copy.fingerprint == ds.fingerprint


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("kind", ["scp", "ark"])
def test_tables_of_no_and_of_one_entry(tmp_path: Path, kind: str, count: int) -> None:
    write_table(tmp_path, matrices(count))
    ds = sk.open(f"{kind}:{tmp_path}/feats.{kind}")
    assert len(ds) == count
    with pytest.raises(sk.errors.KeyNotFound):
        ds.key("utt1")


@pytest.mark.parametrize("spec", ["ark:-", "scp:", "ark,t:gunzip -c a.gz |", "scp,p:make x |"])
def test_tables_that_are_no_files_are_refused_with_the_way_out(spec: str) -> None:
    with pytest.raises(sk.errors.InvalidArgument, match=r"a dataset needs files.*SequentialReader"):
        sk.open(spec)


def test_specs_with_a_mistake_say_it() -> None:
    with pytest.raises(sk.errors.InvalidArgument, match="'x' is not an option"):
        sk.open("scp,x:feats.scp")
    with pytest.raises(sk.errors.InvalidArgument, match=r"Open all of it: ark:a\.ark"):
        sk.open("ark:a.ark:12")
    with pytest.raises(sk.errors.InvalidArgument, match="is opened alone"):
        sk.open(["scp:a.scp", "scp:b.scp"])
    with pytest.raises(sk.DataNotFound):
        sk.open("scp:no-such.scp")


OPENED = """
import sys
import seekable as sk
opener = sk.open
def private():
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_"))
before = private()
ds = opener(sys.argv[1], format=sk.formats.Kaldi(holder="matrix"))
keys = ds.keys()
assert keys[len(ds) // 2] in keys and "none" not in keys
print(private() - before)
"""


def script(folder: Path, lines: int) -> str:
    path = folder / f"{lines}.scp"
    with path.open("w") as file:
        file.writelines(f"utt-{row:08d} {folder}/raw.{row % 40}.ark:{row * 997}\n" for row in range(lines))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    sk.open(path, format=sk.formats.Kaldi(holder="matrix"))
    return str(path)


@pytest.mark.exhaustive
def test_a_script_of_many_lines_takes_no_more_memory_than_a_small_one(tmp_path: Path) -> None:
    small, large = (_kilobytes(script(tmp_path, lines)) for lines in (10, 1_000_000))
    # The system maps some megabytes around the pages that are read; the lines alone are 40 MB.
    assert large < small + 16_000


def _kilobytes(path: str) -> int:
    done = subprocess.run([sys.executable, "-c", OPENED, path], capture_output=True, text=True, check=True)
    return int(done.stdout)
