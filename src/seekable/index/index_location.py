"""The folder in which the index of a root lies.

1. With ``index_dir=`` or, without it, ``SEEKABLE_INDEX_DIR``: below that folder, mirrored by the
   root's absolute path, so that many roots share one index folder. Roots in its own folder ``hub``, of data
   that lies on the Hugging Face Hub, have theirs in ``.seekable`` at the root.
2. Else in ``.seekable`` at the root, if that can be written. At the root of a Shar it is called
   ``.seekable.idx``, because Lhotse takes every other name there for that of a field.
3. Else below ``seekable`` in the user's cache folder (``XDG_CACHE_HOME``, or ``~/.cache``), mirrored
   in the same way. A ``.seekable`` at the root, built by someone who could write there, is used
   instead whenever it is complete for what is opened: one index or the other, never half of each.
   A ``.seekable`` of a stranger (`seekable.storage.trust`) is neither used nor written.

A root that is an address has its index below the folder of 1 or of 3, by scheme, bucket and key:
``s3/bucket/corpus/.seekable``, ``https/host/corpus/.seekable``.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import xxhash

from seekable._arguments import (
    check_workers,
    checked_count,
    checked_flag,
    checked_path,
    explains_fields,
)
from seekable.errors import InvalidArgument
from seekable.storage.far import far
from seekable.storage.file_names import INDEX_FOLDER
from seekable.storage.files import cache_folder, has_access
from seekable.storage.trust import check_no_link, checked_allow, untrusted_owner

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor

_INDEX_OF_SHAR = ".seekable.idx"
_CUTS = ("cuts.000000.jsonl.gz", "cuts.000000.jsonl")
"""The names of a Shar's first file of cuts."""

INDEX_DIR_VARIABLE = "SEEKABLE_INDEX_DIR"
HUB_FOLDER = "hub"

_MOST_NAME_BYTES = 240
"""The longest part of a key that is the name of a folder; file systems allow 255 bytes."""


class Place(msgspec.Struct, frozen=True):
    """The folders of the index of one root."""

    folder: str
    """The folder from which the index is read and, when something is missing, to which it is written."""

    shared: str | None
    """The folder of a read-only index at the root, which is used if it is complete; None without one."""

    untrusted: str = ""
    """The folder of an index at the root that is not used, and whose it is; empty without one."""

    @property
    def notice(self) -> str:
        """A message for the user when something is written; empty if the index lies beside the data."""
        if self.untrusted:
            return f"{self.untrusted}: an index of one's own goes to {self.folder!r}"
        if self.shared is None:
            return ""
        return f"{os.path.dirname(self.shared)!r} cannot be written: its index goes to {self.folder!r}"


def find_index(root: str, *, index_dir: str | os.PathLike[str] | None) -> Place:
    """Return the location of the index of a root.

    Args:
        root: the absolute folder that the data files' names are relative to.
        index_dir: the user's folder for indexes, if any.

    Raises:
        AccessDenied: the index beside the data is a link.

    Example:
        >>> find_index("/data/web", index_dir="/indexes").folder
        '/indexes/data/web/.seekable'
        >>> find_index("s3://bucket/web", index_dir="/indexes").folder
        '/indexes/s3/bucket/web/.seekable'
    """
    chosen = chosen_folder(index_dir)
    if "://" in root:
        return Place(_of_address(chosen or os.path.abspath(cache_folder()), root), None)
    if chosen is not None and not root.startswith(os.path.join(chosen, HUB_FOLDER, "")):
        return Place(_mirrored(chosen, root), None)
    at_root = index_in(root)
    check_no_link(at_root)
    owner = untrusted_owner(at_root, data=root)
    if owner is not None:
        untrusted = (
            f"{at_root!r} is not used, because it belongs to uid {owner}, who is neither this user nor root "
            f"nor the owner of the data"
        )
        return Place(_mirrored(cache_folder(), root), None, untrusted)
    if has_access(at_root if os.path.isdir(at_root) else root, os.W_OK | os.X_OK):
        return Place(at_root, None)
    return Place(_mirrored(cache_folder(), root), at_root)


def index_in(root: str) -> str:
    """Return the folder of the index at a root, whether or not it is there.

    Example:
        >>> index_in("/data/web")
        '/data/web/.seekable'
    """
    usual, of_shar = os.path.join(root, INDEX_FOLDER), os.path.join(root, _INDEX_OF_SHAR)
    for name in _CUTS:
        if os.path.exists(os.path.join(root, name)):
            return of_shar
    if os.path.lexists(of_shar):
        return of_shar
    if os.path.lexists(usual):
        return usual
    # Shards may begin with another number, or have none.
    with suppress(OSError):
        if any(name.startswith("cuts.") for name in os.listdir(root)):
            return of_shar
    return usual


def hub_folder(index_dir: str | os.PathLike[str] | None) -> str:
    """Return the folder in which placeholders of the Hugging Face Hub and its lists of files lie.

    Args:
        index_dir: the user's folder for indexes, if any.

    Example:
        >>> hub_folder("/indexes")
        '/indexes/hub'
    """
    return os.path.join(chosen_folder(index_dir) or os.path.abspath(cache_folder()), HUB_FOLDER)


def listings_folder(index_dir: str | os.PathLike[str] | None) -> str:
    """Return the folder in which listings of stores are kept.

    Args:
        index_dir: the user's folder for indexes, if any.

    Example:
        >>> listings_folder("/indexes")
        '/indexes/listings'
    """
    return os.path.join(chosen_folder(index_dir) or os.path.abspath(cache_folder()), "listings")


def may_hold_placeholders(path: str) -> bool:
    """Return True if a path may be in a folder of placeholders; no code of placeholders is loaded for this.

    Example:
        >>> [may_hold_placeholders(path) for path in ("/cache/hub/datasets--me--web/01/a.jsonl", "/a.jsonl")]
        [True, False]
    """
    return f"{os.sep}{HUB_FOLDER}{os.sep}datasets--" in path


def is_remote(root: str) -> bool:
    """Return True if a root is a folder of placeholders."""
    return may_hold_placeholders(root) and far().placeholders.is_folder(root)


def chosen_folder(index_dir: str | os.PathLike[str] | None) -> str | None:
    """Return the user's folder for indexes, None to have them beside the data.

    Raises:
        WrongType: it is not a path.
        InvalidArgument: it is an address, or no name that a folder can have.
    """
    chosen = index_dir or os.environ.get(INDEX_DIR_VARIABLE)
    if not chosen:
        return None
    return os.path.abspath(_checked_folder(chosen))


def _checked_folder(chosen: str | os.PathLike[str]) -> str:
    folder = checked_path(chosen, name="folder")
    if "://" in folder:
        message = (
            f"{folder!r} is an address, and indexes are built in a folder of this "
            f"machine: name a folder; sk.Index(publish=True), or --publish, puts the index beside the data"
        )
        raise InvalidArgument(message)
    return folder


def _of_address(index_root: str, root: str) -> str:
    """Return the folder of the index of an address.

    A part of a key that would lead elsewhere, ``..`` or one that is too long for a file system, is replaced.
    """
    scheme, _, rest = root.partition("://")
    parts = [_safe_part(part) for part in rest.split("/")]
    return os.path.join(index_root, scheme, *parts, INDEX_FOLDER)


def _safe_part(part: str) -> str:
    if part in ("", ".", "..", INDEX_FOLDER) or len(os.fsencode(part)) > _MOST_NAME_BYTES or "\0" in part:
        return f"~{xxhash.xxh3_64_hexdigest(part.encode('utf-8', 'surrogateescape'))}"
    return part


def _mirrored(index_root: str, root: str) -> str:
    return os.path.join(index_root, root.lstrip(os.sep), INDEX_FOLDER)


@explains_fields("sk.Index")
@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    r"""How the files of a dataset are indexed, and where. Nothing of it enters the fingerprint.

    Args:
        folder: a folder for indexes, instead of beside the data; also ``SEEKABLE_INDEX_DIR``.
        jobs: how many processes may index; by default one for each processor, and none below 1 GiB.
        executor: any ``concurrent.futures.Executor`` to index with instead.
        sampled: True to index and open a sample of the files alone: the first 64 of a keyed permutation of
            the names. Training on the sample can begin while ``seekable index`` indexes the rest; the dataset
            of all files takes its state with ``resume="rows"``.
        publish: of addresses, True to write the index beside the data, into ``.seekable``, where other
            machines find it.
        most_bytes: of addresses, the most bytes that may be transferred to index the data; more are refused
            before the first one. By default all are permitted, and more than 1 GiB are announced.
        allow: a folder, the address of one, a file, or a list of those. Lists that come with data (shards of
            Energon and wids, scripts of Kaldi and packs of Lhotse in stores) name files below their own
            folder; with this also files that lie below these folders. Whoever made the list chooses which of
            those files are read: name the smallest folder that has them.

    Raises:
        InvalidArgument: ``folder`` is an address, ``jobs`` is below 1, ``most_bytes`` is negative, or
            ``allow`` names all files of a machine.
        WrongType: a value has a wrong type.

    Example:
        >>> import pathlib, tempfile, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "a.txt").write_text("one\ntwo\n")
        ...     len(sk.open(f"{folder}/a.txt", index=sk.Index(folder=f"{folder}/indexes", jobs=1)))
        2
    """

    folder: str | os.PathLike[str] | None = None
    jobs: int | None = None
    executor: Executor | None = None
    sampled: bool = False
    publish: bool = False
    most_bytes: int | None = None
    allow: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None

    def __post_init__(self) -> None:
        """Check each value, as far as that needs no files."""
        if self.folder is not None:
            _checked_folder(self.folder)
        check_workers(self.jobs, self.executor)
        checked_flag("sampled", self.sampled)
        checked_flag("publish", self.publish)
        if self.most_bytes is not None:
            checked_count("most_bytes", self.most_bytes, least=0)
        checked_allow(self.allow)
