"""The writing of a dataset to the files of a folder, from the start or from where an earlier call ended."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from seekable.errors import StateMismatch, WrongType
from seekable.formats.decoding import Decoder
from seekable.nodes.graph import known_size
from seekable.nodes.readahead import seconds_a_row
from seekable.parallel.map_ranges import execution_options, map_ranges, with_workers_if_worth_it
from seekable.parallel.progress import watched
from seekable.state.functions import code_digests, python_version
from seekable.storage.files import locked
from seekable.writing import manifest as files
from seekable.writing.manifest import (
    Identity,
    Manifest,
    Written,
    differences,
    new_manifest,
    read_manifest,
    write_manifest,
)
from seekable.writing.shard import Counter, WriteShards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

    from seekable.nodes.contract import Node
    from seekable.parallel.map_ranges import ExecutionOptions
    from seekable.parallel.progress import ProgressHook, Watch
    from seekable.writing.file_format import FileFormat

__all__ = ["WritePolicy", "write"]

_MANIFEST_SECONDS = 2.0
"""The least seconds between two writes of the manifest while files are written."""


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """The treatment of files that earlier calls wrote to the folder."""

    resume: bool
    """True to keep finished files of the same pipeline and arguments."""

    overwrite: bool
    """True to remove files of another pipeline or other arguments; False to raise an error."""

    check_code: bool
    """True to count a pipeline as another one if the code of a function changed."""


def write(  # noqa: PLR0913 - the arguments of the public methods
    dataset: Node,
    folder: str | os.PathLike[str],
    form: FileFormat,
    *,
    rows_per_file: int,
    policy: WritePolicy,
    jobs: int | None,
    executor: Executor | None,
    progress: ProgressHook | None,
) -> Written:
    """Write the records of epoch 0; see ``Dataset.write_parquet``."""
    records = known_size(dataset, f"write_{form.name}()")
    using = execution_options(jobs, executor, at_once=True)
    path = _checked_path(folder)
    identity = Identity(
        pipeline=dataset.fingerprint,
        records=records,
        code=code_digests(_functions(dataset, set())),
        python=python_version(),
        format=form.name,
        suffix=form.suffix,
        rows_per_file=rows_per_file,
        options=form.options,
    )
    with watched(progress, task="writing", rows=records) as watch:
        # Checked before the folder is made: most mistakes show here.
        manifest = _kept(path, identity, policy) if os.path.isdir(path) else None
        if manifest is not None and len(there := files.recorded(path, manifest)) == len(identity.shards):
            watch(records)
            return _written(path, identity, there, kept=len(there))
        form, settled = form.settled(dataset, manifest.settled if manifest else None)
        files.made_folder(path)
        notice = f"another process is writing into {path!r}: waiting for it"
        with locked(os.path.join(path, files.LOCK), waiting=lambda: watch(0, notice=notice)):
            manifest = _kept(path, identity, policy)
            if manifest is None:
                manifest = _begun(path, identity, settled)
            writing = _Writing(dataset, form, path, manifest, watch)
            return writing.run(using)


def _checked_path(folder: object) -> str:
    if not isinstance(folder, str | os.PathLike):
        message = f"folder must be the path of a folder (got {folder!r} of type {type(folder).__name__})"
        raise WrongType(message)
    return os.path.abspath(os.fsdecode(folder))


def _kept(path: str, identity: Identity, policy: WritePolicy) -> Manifest | None:
    """Return the manifest of the files to keep, None if there is none.

    Raises:
        StateMismatch: the folder has files of another pipeline or other arguments.
        InvalidArgument: the folder has other data.
    """
    manifest = read_manifest(path)
    files.refuse_others(path, manifest.identity.shards.names if manifest else ())
    if manifest is None:
        return None
    lines = differences(manifest.identity, identity, check_code=policy.check_code)
    if lines and not policy.overwrite:
        code = (
            "; check_code=False goes on with it" if all(each.startswith("the code") for each in lines) else ""
        )
        message = (
            f"{path!r} holds files of another pipeline or other arguments:\n"
            + "\n".join(lines)
            + f"\nName another folder, or write over it with overwrite=True{code}"
        )
        raise StateMismatch(message)
    return manifest if policy.resume and not lines else None


def _begun(path: str, identity: Identity, settled: str | None) -> Manifest:
    """Remove the files of another call, and write the manifest of this one."""
    before = read_manifest(path)
    if before is not None:
        files.remove_all(path, before.identity.shards)
    manifest = new_manifest(identity, settled)
    write_manifest(path, manifest)
    return manifest


class _Writing:
    """The writing of one call, which holds the lock of the folder."""

    def __init__(self, dataset: Node, form: FileFormat, path: str, manifest: Manifest, watch: Watch) -> None:
        self._dataset = dataset
        self._form = form
        self._path = path
        self._manifest = manifest
        self._watch = watch
        self._shards = manifest.identity.shards
        self._noted = time.monotonic()

    def run(self, using: ExecutionOptions) -> Written:
        """Write the missing files, and return the description of all."""
        files.remove_torn(self._path)
        there = files.finished(self._path, self._manifest, self._form)
        self._manifest.finished = there
        missing = tuple(number for number in range(len(self._shards)) if number not in there)
        kept = len(there)
        tally = Counter(self._watch)
        tally.done = sum(len(self._shards.rows(number)) for number in there)
        job = WriteShards(self._dataset, self._form, self._path, self._shards, missing, tally)
        if missing:
            rows = self._shards.rows(missing[0])
            using = with_workers_if_worth_it(
                using,
                job,
                len(missing),
                seconds=lambda: seconds_a_row(self._dataset, rows) * len(rows) * len(missing),
            )
        try:
            with contextlib.closing(map_ranges(job, len(missing), using=using)) as runs:
                for _, finished in runs:
                    for done in finished:
                        there[done.number] = done.rows, done.bytes
                        tally.done += len(self._shards.rows(done.number))
                    self._watch(tally.done)
                    self._note(seconds=_MANIFEST_SECONDS)
        finally:
            self._note(seconds=0)
            if using.executor is None:  # Workers that an error ended left unfinished files.
                files.remove_torn(self._path)
        return _written(self._path, self._manifest.identity, there, kept=kept)

    def _note(self, *, seconds: float) -> None:
        """Write the manifest if the last write was at least ``seconds`` ago."""
        now = time.monotonic()
        if now - self._noted >= seconds:
            write_manifest(self._path, self._manifest)
            self._noted = now


def _written(path: str, identity: Identity, there: dict[int, tuple[int, int]], *, kept: int) -> Written:
    rows = sum(rows for rows, _ in there.values())
    return Written(
        paths=tuple(os.path.join(path, name) for name in identity.shards.names),
        rows=rows,
        holes=identity.records - rows,
        bytes=sum(size for _, size in there.values()),
        kept=kept,
    )


def _functions(node: Node, seen: set[int]) -> Iterator[Callable[..., Any]]:
    """Yield the functions of a node and of its descendants, depth first; each node once.

    Functions of a node with a ``version`` are left out: the version stands for their code.
    """
    if id(node) in seen:
        return
    seen.add(id(node))
    if is_dataclass(node) and getattr(node, "version", None) is None:
        for field in fields(node):
            value = getattr(node, field.name)
            value = value.function if isinstance(value, Decoder) else value
            if callable(value):
                yield value
    for child in node.children:
        yield from _functions(child, seen)
