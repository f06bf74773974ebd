"""Tables that kaldi_native_io wrote, and commands that read standard input in this process."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import kaldi_native_io as kn
import numpy as np
import pytest
from tests.cli.command import environment, run
from tests.cli.warm import SEEKABLE

MATRICES = {
    f"utt{number}": np.random.default_rng(number).normal(size=(4 + number, 3)).astype("f4")
    for number in range(6)
}
ALIGNMENTS = {f"utt{number}": list(range(number)) for number in range(6)}


def write_matrices(folder: Path, options: str = "") -> Path:
    """Write feats.ark and feats.scp, and return the archive."""
    path = folder / "feats.ark"
    with kn.FloatMatrixWriter(f"ark,scp{options}:{path},{folder / 'feats.scp'}") as writer:
        for key, matrix in MATRICES.items():
            writer.write(key, matrix)
    return path


def write_alignments(folder: Path, options: str = "") -> Path:
    """Write ali.ark, and return it."""
    path = folder / "ali.ark"
    with kn.Int32VectorWriter(f"ark{options}:{path}") as writer:
        for key, numbers in ALIGNMENTS.items():
            writer.write(key, numbers)
    return path


def write_wave(path: Path, *, seconds: float = 0.5, channels: int = 1, rate: int = 8000) -> Path:
    """Write a wave file of a tone."""
    samples = np.sin(np.arange(int(seconds * rate))) * 1000
    path.write_bytes(b"")
    with kn.WaveWriter(f"ark:{path}.ark") as writer:
        writer.write("w", kn.WaveData(rate, np.stack([samples] * channels).astype("f4")))
    path.write_bytes(Path(f"{path}.ark").read_bytes().removeprefix(b"w "))
    return path


def read_matrices(rspecifier: str) -> dict[str, Any]:
    """Return what kaldi_native_io reads."""
    with kn.SequentialFloatMatrixReader(rspecifier) as reader:
        return {key: np.array(matrix) for key, matrix in reader}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return True for tables of the same keys, in the same order, with equal arrays."""
    return list(one) == list(other) and all(np.array_equal(one[key], other[key]) for key in one)


def run_with_input(
    data: bytes, *arguments: str | Path, cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in this process, which reads standard input."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        return run(*arguments, cwd=cwd)


def run_script(script: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a line of bash in a folder; `seekable` is the command, and a failure in a pipe counts."""
    path = f"{Path(SEEKABLE).parent}:{environment()['PATH']}"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", script],
        cwd=folder,
        env={**environment(), "PATH": path},
        capture_output=True,
        check=False,
    )
