"""The core without a subject that plugs into it: its own work goes on, and what is lacking is named."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT_STORES = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("seekable.remote"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())

import seekable as sk

folder = sys.argv[1]
ds = sk.from_sequence([{"id": row} for row in range(20)])
ds.write_jsonl(f"{folder}/lines", rows_per_file=7)
ds = sk.open(f"{folder}/lines", key="id").shuffle(seed=1)
assert ds.explain()
loader = sk.Loader(ds, batch_size=4)
first = next(iter(loader))
sk.save_state(f"{folder}/states", loader)
resumed = sk.Loader(ds, batch_size=4)
assert sk.load_state(f"{folder}/states", resumed)
assert len(list(resumed)) == 4
ds.save(f"{folder}/pipeline.json")
assert list(sk.load_dataset(f"{folder}/pipeline.json")) == list(ds)

def lacking(call):
    try:
        call()
    except sk.errors.MissingDependency as error:
        return "seekable.remote, which is not installed" in str(error)

assert lacking(lambda: sk.open("s3://bucket/a.jsonl"))
assert lacking(lambda: sk.open("hf:me/web:train"))
assert lacking(lambda: ds.write_jsonl("s3://bucket/lines"))
assert not any(name.startswith("seekable.remote") for name in sys.modules)
"""


def test_local_data_needs_no_code_of_stores(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_STORES, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
