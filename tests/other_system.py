"""The core's work on a system without what only Linux has: a program of tests/test_other_systems.py.

    python -m tests.other_system FOLDER

`work` writes data into FOLDER, indexes it in processes, reads it in every way, trains with workers, stops and
goes on. What came out is printed as JSON; the test compares it with the work of this system.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import seekable as sk
from seekable import kaldi
from seekable.parallel.processes import usable_cpus
from seekable.remote.cache.disk_cache import Claims, is_network_folder
from seekable.storage.memory import cache_bytes

RECORDS = 400

LACKING = {
    "os": (
        *("posix_fadvise", "POSIX_FADV_WILLNEED", "POSIX_FADV_DONTNEED", "posix_fallocate", "fdatasync"),
        *("SEEK_HOLE", "SEEK_DATA", "preadv", "pwritev", "copy_file_range", "splice", "sendfile"),
        *("sched_getaffinity", "sched_setaffinity", "memfd_create", "eventfd", "pidfd_open", "getrandom"),
        *("O_PATH", "O_TMPFILE", "O_DIRECT", "O_NOATIME", "getxattr", "setxattr", "pipe2"),
    ),
    "resource": ("RUSAGE_THREAD", "prlimit"),
    "fcntl": ("F_OFD_SETLK", "F_OFD_SETLKW", "F_OFD_GETLK", "F_SETPIPE_SZ", "F_GETPIPE_SZ", "F_ADD_SEALS"),
    "mmap": ("MADV_DONTNEED", "MADV_RANDOM", "MADV_HUGEPAGE", "MAP_POPULATE"),
    "select": ("epoll",),
    "signal": ("sigtimedwait", "sigwaitinfo"),
    "socket": ("TCP_KEEPIDLE", "AF_NETLINK"),
}
"""By module the names that macOS, or another POSIX system, lacks."""

LACK = f"""
import importlib, sys
for module, names in {LACKING!r}.items():
    for name in names:
        if hasattr(importlib.import_module(module), name):
            delattr(importlib.import_module(module), name)

def refuse(event, arguments):
    path = arguments[0] if event in ("open", "os.listdir", "os.scandir") else None
    if isinstance(path, (str, bytes)) and str(path).startswith(("/proc", "/sys", "b'/proc", "b'/sys")):
        raise FileNotFoundError(2, "no such file, as on macOS", path)

sys.addaudithook(refuse)
sys.lacks_linux = True
"""
"""The text of a ``sitecustomize.py``: each interpreter that starts with it has a poorer system."""


def is_kept(record: dict[str, Any]) -> bool:
    """Return True for most records."""
    return bool(record["id"] % 3)


def marked(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record that says whether the interpreter that made it has the poorer system."""
    return {**record, "lacks": hasattr(sys, "lacks_linux")}


def work(folder: Path, *, processes: int) -> dict[str, Any]:
    """Write data, and return what every part of the core makes of it, in some processes or in this one."""
    for name in ("web", "code"):
        lines = (json.dumps({"id": row, "text": f"{name} {row}" * 20}) for row in range(RECORDS))
        (folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    jobs = processes or 1
    web, code = (
        sk.open(folder / f"{name}.jsonl", index=sk.Index(jobs=jobs), key="id") for name in ("web", "code")
    )
    kept = code.filter(is_kept, jobs=jobs, save=folder / "kept.u64")
    data = sk.mix({"web": web.shuffle(seed=1), "code": kept.shuffle(seed=2, window=2, lanes=2)}, seed=0)
    found = {
        "records": [web[7], web.key(9), web[[5, 3]]],
        "place": web.locate(5).offset,
        "ids": [record["id"] for record in data],
        "stream": [item["text"] for item in data.stream(lanes=4, epochs=1).shuffle(buffer=9, seed=3)],
        **_trained(folder, data.map(marked), processes),
        "kaldi": _objects(folder),
        "cpus": usable_cpus() > 0,
        "cache": cache_bytes() > 0,
        "network": is_network_folder(str(folder)),
    }
    data.take(50).write_jsonl(folder / "written")
    found["written"] = list(sk.open(folder / "written"))
    claim = Claims(str(folder)).claim(range(3))
    found["claimed"] = claim is not None
    return found


def _trained(folder: Path, data: sk.Dataset, processes: int) -> dict[str, Any]:
    """Return the batches of a run in processes that is stopped and goes on in threads."""
    batches: list[Any] = []
    told: set[bool] = set()
    for workers in (sk.Workers(processes), sk.Workers(2, type="thread")):
        with sk.Loader(data, batch_size=64, workers=workers) as loader:
            sk.load_state(folder / "states", loader)
            for batch in loader:
                batches.append(batch["text"])
                told |= set(batch["lacks"].tolist())
                if loader.step == 4 and workers.type == "process":
                    sk.save_state(folder / "states", loader)
                    break
    return {"batches": batches, "lacks": sorted(told)}


def _objects(folder: Path) -> list[Any]:
    """Return the sums of matrices, of which some are longer than the buffers of a reader."""
    with kaldi.Writer(f"ark,scp:{folder}/a.ark,{folder}/a.scp", "matrix") as writer:
        for row in range(4):
            writer.write(str(row), np.full((300 * row + 2, 40), row, np.float32))
    with kaldi.SequentialReader(f"ark:{folder}/a.ark", "matrix") as reader:
        read = [float(value.sum()) for _, value in reader]
    return [read, [float(value.sum()) for _, value in sk.open(f"scp:{folder}/a.scp")]]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(work(Path(sys.argv[1]), processes=2)))
