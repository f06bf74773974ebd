"""The bytes of files on the Hub: of the Hub as a store, or of copies that ``huggingface_hub`` has made."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from seekable.errors import MissingDependency
from seekable.remote.hub import hub
from seekable.remote.object_ranges import ObjectRanges, object_ref
from seekable.remote.stores.store import identity_of
from seekable.storage.mapped import MappedFile, MappedRanges

if TYPE_CHECKING:
    from seekable.remote.fetching.wants import ObjectRef
    from seekable.remote.placeholder import HubFile
    from seekable.storage.ranges import RangeSource

__all__ = ["hub_object", "hub_ranges", "local_copy"]


def hub_ranges(file: HubFile) -> RangeSource:
    """Return the byte ranges of a file; of its copy on this machine, if ``huggingface_hub`` has one."""
    copy = local_copy(file)
    if copy is None:
        return ObjectRanges(hub_object(file))
    status = os.stat(copy)
    return MappedRanges(MappedFile(copy, size=status.st_size, mtime_ns=status.st_mtime_ns), path=file.uri)


def hub_object(file: HubFile) -> ObjectRef:
    """Return the reference to a file as an object of a store."""
    identity = identity_of(file.etag, modified_ns=0, size=file.size)
    ref = object_ref(file.uri, size=file.size, identity=identity)
    ref.pin.etag = file.etag
    return ref


def local_copy(file: HubFile) -> str | None:
    """Return the path of a file in the cache of ``huggingface_hub``, None if it was not downloaded."""
    try:
        found = hub().try_to_load_from_cache(
            file.repo, file.path, revision=file.revision, repo_type="dataset"
        )
    except (MissingDependency, OSError, ValueError):
        return None
    if not isinstance(found, str):
        return None
    path = os.path.realpath(found)
    # The cache keeps a file under its digest, and links to it; where links are impossible, it has a copy.
    if os.path.islink(found) and os.path.basename(path) != file.etag:
        return None
    return path if os.path.getsize(path) == file.size else None
