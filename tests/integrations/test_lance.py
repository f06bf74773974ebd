"""The example of a format of one's own: tables of Lance, by a package that is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import seekable as sk
from seekable.formats import plugins
from seekable.testing import FormatTests

if TYPE_CHECKING:
    from collections.abc import Iterator

LANCE = Path(sys.prefix) / "apart" / "lance"
EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"
RECORDS = [{"id": row, "text": f"text {row}"} for row in range(11)]


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Install the example into a folder of its own, here and for child processes."""
    assert LANCE.is_dir(), f"{LANCE} is missing: run `make nightly`, which installs Lance there"
    folder = str(tmp_path_factory.mktemp("packages"))
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        folder,
        str(EXAMPLE),
    ]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(LANCE))
        patch.syspath_prepend(folder)
        paths = [folder, str(LANCE), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        plugins.forget()
        yield
    plugins.forget()


def write(folder: str | Path) -> str:
    import lance

    path = os.path.join(folder, "a.lance")
    lance.write_dataset(pa.Table.from_pylist(RECORDS), path, max_rows_per_file=4)
    return path


class TestLance(FormatTests):
    def write(self, folder: str) -> Any:
        return write(folder)

    def records(self) -> list[Any]:
        return RECORDS


def test_a_run_goes_on_with_the_version_that_it_began_with(tmp_path: Path) -> None:
    import lance

    path = write(tmp_path)
    whole = list(sk.Loader(sk.open(path).shuffle(seed=1), batch_size=2, epochs=1, collate=list))
    loader = sk.Loader(sk.open(path).shuffle(seed=1), batch_size=2, epochs=1, collate=list)
    batches = iter(loader)
    begun = [next(batches) for _ in range(2)]
    state = loader.state_dict()
    lance.dataset(path).delete("id = 3")
    from seekable_lance import Lance

    assert len(sk.open(path)) == 10
    again = sk.Loader(
        sk.open(path, format=Lance(table_version=1)).shuffle(seed=1), batch_size=2, epochs=1, collate=list
    )
    again.load_state_dict(state)
    assert begun + list(again) == whole
    with pytest.raises(sk.StateMismatch):
        sk.Loader(sk.open(path).shuffle(seed=1), batch_size=2, epochs=1, collate=list).load_state_dict(state)


def test_a_version_that_is_not_there_is_named(tmp_path: Path) -> None:
    from seekable_lance import Lance

    with pytest.raises(sk.DataNotFound, match=r"has no version 7; there are \[1\]"):
        sk.open(write(tmp_path), format=Lance(table_version=7))


def test_columns_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(sk.SeekableError, match="has no column 'lang'; there are id, text"):
        sk.open(write(tmp_path), columns=["lang"])[0]
