"""The checks of ``seekable doctor``: packages, limits, processes and the cache folder of this machine."""

from __future__ import annotations

import multiprocessing
import os
import platform
import re
import resource
import sys
import sysconfig
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Literal

from seekable._version import __version__
from seekable.errors import InvalidArgument
from seekable.formats import plugins
from seekable.formats.table import NAMES, card_by_suffix
from seekable.index.index_location import INDEX_DIR_VARIABLE
from seekable.parallel.processes import usable_cpus
from seekable.storage.files import cache_folder
from seekable.storage.mapped import most_maps
from seekable.storage.memory import bytes_in_words, cache_bytes, memory_bytes

Level = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of ``seekable doctor``."""

    group: str
    """The group of the check: "versions", "formats", "limits", "processes", "cache", "store" or "data"."""

    name: str
    level: Level
    """``warn`` slows a run down or stops a large one; with ``bad`` something does not work."""

    value: str
    """The value that the check found."""

    advice: str = ""
    """The advice for the user; empty if nothing is to be done."""


def graded(group: str, name: str, value: str, *, bad: str = "", warn: str = "") -> Finding:
    """Return a finding at the level of the given advice: ``bad``, ``warn``, or ok without advice.

    Example:
        >>> graded("limits", "open files", "64", warn="ulimit -n 4096").level
        'warn'
        >>> graded("limits", "open files", "4096").level
        'ok'
    """
    return Finding(group, name, "bad" if bad else "warn" if warn else "ok", value, bad or warn)


_OURS = "seekable"

_NAME = re.compile(r"[A-Za-z0-9._-]+")

_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


def version_findings() -> Iterator[Finding]:
    """Yield the versions of seekable, Python and all required and optional packages."""
    yield Finding("versions", _OURS, "ok", __version__)
    yield _python()
    try:
        needed = requires(_OURS) or []
    except PackageNotFoundError:
        yield graded(
            "versions", "packages", "seekable is not installed", warn="pip install . in its checkout"
        )
        return
    for extra, name in _packages(needed):
        found = _version(name)
        if extra:
            missing = f"not installed: pip install 'seekable[{extra}]' brings it"
            yield Finding("versions", f"{name} [{extra}]", "ok", found or missing)
        else:
            yield graded(
                "versions", name, found or "not installed", bad="" if found else f"pip install {name}"
            )


def format_findings() -> Iterator[Finding]:
    """Yield the formats of other packages: their classes and suffixes, and what keeps them from use."""
    for point, form in plugins.installed():
        if not isinstance(form, type):
            yield graded("formats", point.name, "cannot be used", bad=str(form))
            continue
        ends = " ".join(form.card.suffixes) or "no suffixes"
        if point.name in NAMES:
            advice = f"seekable itself has a format {point.name!r}: {point.value} needs another name"
        elif taken := [end for end in form.card.suffixes if card_by_suffix(f"a{end}")]:
            advice = f"seekable itself opens {' '.join(taken)}: say format={point.name!r}"
        else:
            advice = ""
        yield graded("formats", point.name, f"{point.value}, {ends}", warn=advice)


def _python() -> Finding:
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    value = f"{platform.python_implementation()} {platform.python_version()}, {platform.system()}"
    if not free_threaded:
        return graded("versions", "python", value)
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    advice = "seekable is tested on builds with the lock"
    return graded("versions", "python", f"{value}, free-threaded, lock {'on' if gil else 'off'}", warn=advice)


def _packages(needed: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the extra ("" for none) and the name of each package that a user may need.

    Example:
        >>> list(_packages(["numpy>=2", "torch>=2; extra == 'torch'"]))
        [('', 'numpy'), ('torch', 'torch')]
    """
    for requirement in needed:
        name = _NAME.match(requirement)
        extra = _EXTRA.search(requirement)
        if name and name[0] != _OURS:
            yield extra[1] if extra else "", name[0]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


_FEW_FILES = 1024

_TOO_FEW_FILES = 256

_USUAL_MAPS = 65530

_SMALL_SHARED_BYTES = 1 << 30

_MAPS = "/proc/sys/vm/max_map_count"

_CPU_QUOTA = "/sys/fs/cgroup/cpu.max"

_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - looked at, not written


def limit_findings() -> Iterator[Finding]:
    """Yield the limits that a large dataset may reach."""
    yield _open_files()
    yield from _maps()
    yield _processors()
    yield _memory()
    yield from _shared_memory()


def process_findings() -> Iterator[Finding]:
    """Yield the start method of processes, and the ranks in the environment."""
    method = multiprocessing.get_start_method()
    value = f"start method {method}, {threading.active_count()} thread(s) alive here"
    advice = (
        ""
        if method != "fork"
        else (
            "a fork copies locks that other threads hold: start workers before threads, or use 'spawn' or "
            "'forkserver'"
        )
    )
    yield Finding("processes", "fork", "ok", f"{value}; open datasets reopen their files in a child", advice)
    ranks = {name: os.environ[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK") if name in os.environ}
    if ranks:
        told = ", ".join(f"{name}={value}" for name, value in ranks.items())
        yield Finding("processes", "ranks", "ok", told, "a Loader wants rank= and world_size= said")


def cache_findings() -> Iterator[Finding]:
    """Yield the folders of indexes that cannot lie beside their data."""
    folder = cache_folder()
    used = (
        f"{bytes_in_words(folder_tree_bytes(folder))} of indexes"
        if os.path.isdir(folder)
        else "not there yet"
    )
    advice = (
        ""
        if can_be_written(folder)
        else (f"it cannot be written: set XDG_CACHE_HOME, or {INDEX_DIR_VARIABLE}, to a folder that can")
    )
    yield graded("cache", "cache folder", f"{folder}, {used}", warn=advice)
    chosen = os.environ.get(INDEX_DIR_VARIABLE)
    if chosen:
        bad = "" if can_be_written(chosen) else "all indexes go there, and it cannot be written"
        yield graded("cache", INDEX_DIR_VARIABLE, os.path.abspath(chosen), bad=bad)


def can_be_written(folder: str) -> bool:
    """Return True if a folder can be written, or created."""
    folder = os.path.abspath(folder)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def folder_tree_bytes(folder: str) -> int:
    """Return the size in bytes of all files below a folder."""
    return sum(
        os.lstat(os.path.join(here, name)).st_size for here, _, names in os.walk(folder) for name in names
    )


def _open_files() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    of = "no limit" if hard == resource.RLIM_INFINITY else f"{hard:,}"
    value = f"{soft:,} (of {of}): up to {most_maps():,} data files are kept open"
    advice = "with more files than that, each read may have to open one: ulimit -n 8192"
    return graded(
        "limits",
        "open files",
        value,
        bad="too few for a library to work: ulimit -n 4096" if 0 <= soft < _TOO_FEW_FILES else "",
        warn=advice if 0 <= soft < _FEW_FILES else "",
    )


def _maps() -> Iterator[Finding]:
    text = _read(_MAPS)
    if text and text.isdecimal():
        few = int(text) < _USUAL_MAPS
        advice = f"sysctl -w vm.max_map_count={_USUAL_MAPS}" if few else ""
        yield graded("limits", "memory maps", f"{int(text):,} in a process", warn=advice)


def _processors() -> Finding:
    usable, there = usable_cpus(), os.cpu_count() or 1
    value = f"{usable} of {there}"
    quota, _, period = (_read(_CPU_QUOTA) or "").partition(" ")
    if quota.isdecimal() and period.isdecimal():
        share = int(quota) / int(period)
        value += f", a quota of {share:g}"
        if share < usable:
            return graded(
                "limits", "processors", value, warn=f"say jobs={max(1, round(share))} when indexing"
            )
    return graded("limits", "processors", value)


def _memory() -> Finding:
    try:
        cache = cache_bytes()
    except InvalidArgument as error:
        return graded("limits", "memory", bytes_in_words(memory_bytes()), bad=str(error))
    value = f"{bytes_in_words(memory_bytes())}, of which {bytes_in_words(cache)} are taken to hold data"
    return graded("limits", "memory", value)


def _shared_memory() -> Iterator[Finding]:
    if not os.path.isdir(_SHARED_MEMORY):
        return
    status = os.statvfs(_SHARED_MEMORY)
    size = status.f_frsize * status.f_blocks
    advice = "PyTorch's workers hand tensors over through it: docker run --shm-size=8g"
    yield graded(
        "limits", "shared memory", bytes_in_words(size), warn=advice if size < _SMALL_SHARED_BYTES else ""
    )


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None
