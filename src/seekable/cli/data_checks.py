"""The checks of ``seekable doctor`` on data: its files, its index, and the space for the index."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

from seekable.cli.machine_checks import Finding, can_be_written, graded
from seekable.cli.store_checks import range_findings, store_findings
from seekable.errors import SeekableError
from seekable.formats.classify import classify
from seekable.index.catalog import CATALOG, read_table
from seekable.index.index_location import Place, find_index
from seekable.remote.index.publishing import PublishedFolder
from seekable.remote.mounts import mounted
from seekable.storage.access import Storage
from seekable.storage.addresses import is_address, shown
from seekable.storage.listing import FoundFiles
from seekable.storage.memory import bytes_in_words
from seekable.storage.paths import status

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_MAGIC = re.compile(r"[*?\[{]")
_MOUNTS = "/proc/self/mounts"
_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "lustre", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "9p"}
)
_AHEAD_SECONDS = 60
_LITTLE_ROOM_BYTES = 1 << 30


def data_findings(path: str, *, index_dir: str | None) -> Iterator[Finding]:
    """Yield the findings on the files of some data, on its index, and on the free space.

    Of data in a store come those on the store first, and where a file cannot be found or read that is one.

    Raises:
        DataNotFound: there is no such data on this machine.
    """
    if "://" not in path:
        yield from _found_files(path, index_dir=index_dir)
        return
    with mounted(path, Storage(), index_dir=index_dir) as renamed:
        findings = [*store_findings(_folder(str(renamed)))]
        if all(finding.level != "bad" for finding in findings):
            try:
                findings += _found_files(_without_scheme(str(renamed)), index_dir=index_dir)
            except (SeekableError, OSError) as error:
                findings.append(graded("data", "files", "not found", bad=str(error)))
        yield from sorted(findings, key=lambda finding: finding.group == "data")


def _without_scheme(source: str) -> str:
    """Return the address behind the scheme of a spec; of data of tokens the spec itself."""
    is_tokens = source.startswith(("megatron:", "tokens:"))
    return source if is_tokens else _address_in(source)


def _address_in(source: str) -> str:
    """Return the address in a source, which is all of it or stands behind the scheme of a spec."""
    found = _SCHEME.search(source)
    return source[found.start() :] if found else source


def _folder(source: str) -> str:
    """Return the address of the folder of a source: its fixed part.

    Example:
        >>> _folder("scp:s3://bucket/feats.scp"), _folder("s3://bucket/web/*.jsonl"), _folder("s3://bucket/web")
        ('s3://bucket', 's3://bucket/web', 's3://bucket/web')
    """
    address = _address_in(source)
    key = address.partition("://")[2].partition("/")[2]
    fixed = address.removesuffix(key) + _MAGIC.split(key)[0]
    folder, _, name = fixed.rpartition("/")
    is_file = fixed != address or ("." in name and not folder.endswith("/"))
    return folder if is_file else fixed


def _found_files(path: str, *, index_dir: str | None) -> Iterator[Finding]:
    for found in classify(path, index_dir=index_dir).found:
        place = find_index(found.root, index_dir=index_dir)
        yield _files(found)
        yield _index(place)
        if is_address(found.root):
            yield _published(found.root)
        yield _room(place)
        if is_address(found.root):
            yield from range_findings([os.path.join(found.root, name) for name in found.names])


def _published(root: str) -> Finding:
    folder = PublishedFolder(root)
    try:
        is_there = folder.stat(CATALOG) is not None
    except (SeekableError, OSError):
        is_there = False
    way = "" if root.startswith("http") else ": `seekable index --publish` writes it, for all machines"
    value = folder.shown if is_there else f"none in {folder.shown}{way}"
    return graded("data", "published index", value)


def _files(found: FoundFiles) -> Finding:
    if is_address(found.root):
        sizes = [status(os.path.join(found.root, name)).size for name in found.names]
        value = f"{shown(found.root)}: {len(found.names):,} object(s), {bytes_in_words(sum(sizes))}"
        return graded("data", "files", value)
    statuses = [os.stat(os.path.join(found.root, name)) for name in found.names]
    size = sum(each.st_size for each in statuses)
    value = (
        f"{found.root}: {len(found.names):,} file(s), {bytes_in_words(size)}, on {_filesystem(found.root)}"
    )
    ahead = max(each.st_mtime for each in statuses) - time.time()
    if ahead > _AHEAD_SECONDS:
        advice = (
            f"a file was modified {ahead:,.0f} s in the future: set the clocks, or a change may go unseen"
        )
        return graded("data", "files", value, warn=advice)
    if _filesystem(found.root) in _NETWORK:
        advice = "random reads over a network are slow unless the data fits in memory: see shuffle(window=)"
        return graded("data", "files", value, warn=advice)
    return graded("data", "files", value)


def _index(place: Place) -> Finding:
    why = " (the data's folder cannot be written)" if place.shared else ""
    folder = place.folder
    if place.shared and read_table(place.shared):
        return graded("data", "index", f"{place.shared}, read only; what it lacks goes to {folder}")
    if not can_be_written(folder):
        bad = "it cannot be written: name a folder that can with --index-dir or SEEKABLE_INDEX_DIR"
        return graded("data", "index", f"{folder}{why}", bad="" if read_table(folder) else bad)
    if read_table(folder):
        return graded("data", "index", f"{folder}{why}")
    damaged = os.path.exists(os.path.join(folder, CATALOG))
    what = "is damaged, and will be built anew" if damaged else "is not there yet"
    return graded("data", "index", f"{folder}{why} {what}")


def _room(place: Place) -> Finding:
    folder = place.folder
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    room = os.statvfs(folder)
    free = room.f_frsize * room.f_bavail
    advice = "an index takes 8 bytes a record; an index build that runs out of room leaves the old one"
    warn = advice if free < _LITTLE_ROOM_BYTES else ""
    return graded("data", "room for it", f"{bytes_in_words(free)} free on {_filesystem(folder)}", warn=warn)


def _filesystem(path: str) -> str:
    """Return the type of the file system of a path, if /proc/self/mounts shows it."""
    best, kind = "", "a file system of unknown type"
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
            lines = [line.split(" ") for line in mounts]
    except OSError:
        return kind
    real = os.path.realpath(path)
    for _, point, type_of_it, *_ in lines:
        place = point.replace("\\040", " ").rstrip("/")
        if (real == place or real.startswith(f"{place}/")) and len(place) >= len(best):
            best, kind = place, type_of_it
    return kind
