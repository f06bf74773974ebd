"""Readers of tar files that lie in a folder of their own: wids, and Megatron Energon in its own process.

``python -m tests.tar_readers FOLDER RESULT`` writes the pickled samples. Energon reads files through the
Multi-Storage Client, which is large and does nothing for local files: a stand-in takes its place.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import IO, Any

ROOT = Path(__file__).parents[1]
FOLDER = Path(sys.prefix) / "apart" / "tar"


def samples_by_energon(folder: Path, result: Path) -> list[dict[str, Any]]:
    """Return the samples of a folder as Energon has them: keys and encoded fields."""
    assert FOLDER.is_dir(), f"{FOLDER} is missing: run `make nightly`, which installs Energon there"
    command = [sys.executable, "-m", "tests.tar_readers", str(folder), str(result)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    found: list[dict[str, Any]] = pickle.loads(result.read_bytes())
    return found


class Info:
    def __init__(self, path: str) -> None:
        self.content_length = os.path.getsize(path)
        self.type = "directory" if os.path.isdir(path) else "file"


class StorageClient:
    def open(self, path: str, mode: str = "rb", **_: Any) -> IO[Any]:
        return open(path, mode)

    def get_posix_path(self, path: str) -> str:
        return path

    def info(self, path: str) -> Info:
        return Info(path)

    def is_file(self, path: str) -> bool:
        return os.path.isfile(path)

    def copy(self, source: str, target: str) -> None:
        shutil.copyfile(source, target)

    def delete(self, path: str) -> None:
        os.unlink(path)


def stand_in() -> ModuleType:
    module: Any = ModuleType("multistorageclient")
    client = StorageClient()
    module.StorageClient = StorageClient
    module.resolve_storage_client = lambda _: (client, "")
    module.types = ModuleType("types")
    module.types.ObjectMetadata = Info
    return module  # type: ignore[no-any-return]


def main(folder: str, result: str) -> None:
    sys.path.append(str(FOLDER))
    sys.modules["multistorageclient"] = stand_in()
    from megatron.energon.epathlib import EPath
    from megatron.energon.flavors.webdataset.itar_reader import ShardInfosITarReader
    from megatron.energon.flavors.webdataset.prepare import WebdatasetPreparator
    from megatron.energon.flavors.webdataset.structs import ShardInfo

    names = sorted(name for name in os.listdir(folder) if name.endswith(".tar"))
    WebdatasetPreparator.prepare_dataset(folder, names, split_parts_ratio=[("train", 1.0)], workers=1)
    counts = json.loads((Path(folder) / ".nv-meta" / ".info.json").read_text())["shard_counts"]
    shards = [
        ShardInfo(name=name, path=EPath(f"{folder}/{name}"), count=count) for name, count in counts.items()
    ]
    reader = ShardInfosITarReader(EPath(folder), shards)
    samples = [
        {name: value for name, value in reader[row].items() if name == "__key__" or not name.startswith("__")}
        for row in range(len(reader))
    ]
    Path(result).write_bytes(pickle.dumps(samples))


if __name__ == "__main__":
    main(*sys.argv[1:])
