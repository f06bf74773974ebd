"""How files are indexed, as a value: ``sk.Index``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable._arguments import checked_count, checked_flag
from seekable.storage.trust import checked_allow

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from concurrent.futures import Executor


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
        InvalidArgument: ``most_bytes`` is negative, or ``allow`` names all files of a machine.
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
        """Check what needs no files."""
        checked_flag("sampled", self.sampled)
        checked_flag("publish", self.publish)
        if self.most_bytes is not None:
            checked_count("most_bytes", self.most_bytes, least=0)
        checked_allow(self.allow)
