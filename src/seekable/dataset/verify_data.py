"""The verification of data files: against their index, and record by record."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from seekable._lazy import lazy
from seekable.dataset.source_kinds import spec_of_tokens
from seekable.dataset.specs import spec_of
from seekable.formats.registry import find_data, format_named, format_of_all
from seekable.formats.shar.shar_opening import format_of_field, open_shar, unequal_files
from seekable.formats.shar.shar_spec import shar_files
from seekable.formats.source_options import SourceOptions
from seekable.index.integrity import VerificationProblem
from seekable.index.surveyor import is_table_indexer
from seekable.index.verification import Verification, verify_files
from seekable.nodes.bases import leaves_of
from seekable.nodes.files.leaf import FilesLeaf
from seekable.parallel.map_ranges import execution_options, map_ranges
from seekable.parallel.progress import Progress
from seekable.storage.listing import FoundFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

    from seekable.errors import CorruptRecord
    from seekable.formats.registry import Format
    from seekable.formats.shar.discovery import SharFiles
    from seekable.index.fileset import FileSet
    from seekable.nodes.contract import Node
    from seekable.nodes.files.leaf import Bad
    from seekable.parallel.progress import ProgressHook
    from seekable.storage import paths
    from seekable.storage.listing import Asked
else:
    paths = lazy("seekable.storage.paths")

__all__ = ["verify", "verify_sources"]


class _Decodable(Protocol):
    """A source of files whose records can be decoded to find those that are damaged."""

    @property
    def files(self) -> FileSet: ...

    @property
    def size(self) -> int: ...

    def bad_rows(self, start: int, stop: int) -> Bad: ...


@dataclass(frozen=True, slots=True)
class _Run:
    """The arguments of a user for how records are decoded."""

    jobs: int | None
    executor: Executor | None
    progress: ProgressHook | None


def verify(  # noqa: PLR0913 - keywords
    source: Asked,
    *,
    format: str | None = None,  # noqa: A002 - what users call it
    deep: bool = False,
    decode: bool = False,
    index_dir: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: ProgressHook | None = None,
    dtype: Any = None,
    eos: int | None = None,
    bos: int | None = None,
) -> Verification:
    r"""Return the problems of files and of their index; nothing is written, and no problem raises an error.

    Of ``hf:REPO:SPLIT`` the list of files and the placeholders are written, as ``open`` does. A deep
    verification takes bytes from this machine as far as they are here, and else from the Hub.

    Args:
        source: as of ``open``, a spec too.
        format: as of ``open``.
        deep: read all of each file, find its records again and compare them with the index; else compare the
            size, the time and both ends.
        decode: also decode each record of the files without another problem, as the format does by default;
            of tokens, compare each id with the vocabulary that a token store has.
        index_dir: as of ``open``.
        jobs: the most processes that read; by default one for each processor, where that is faster.
        executor: any ``concurrent.futures.Executor`` that reads and decodes whole files instead; its workers
            need the data and the folders of the indexes under the same paths.
        progress: is called with the progress of the reading.
        dtype: as of ``open``.
        eos: as of ``open``.
        bos: as of ``open``.

    Raises:
        DataNotFound: a file does not exist.
        UnsupportedFormat: a suffix is not known, or there is more than one format.
        Unreachable: the data is on the Hub, which cannot be reached, and not on this machine.

    Example:
        >>> import pathlib, tempfile, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     data = pathlib.Path(folder, "a.jsonl")
        ...     _ = data.write_text('{"id": 0}\n{"id": 1}\n')
        ...     good = verify(folder, deep=True) if sk.open(folder) else None
        ...     _ = data.write_text('{"id": 0}\n{"id": 10}\n')
        ...     (bad,) = verify(folder).problems
        >>> good.problems, good.records, bad.kind
        ((), 2, 'changed')
    """
    shown = repr(os.fspath(source) if isinstance(source, os.PathLike) else source)
    options = SourceOptions(shown=shown, dtype=dtype, eos=eos, bos=bos)
    how = _Run(jobs, executor, progress)
    check = partial(
        verify_files, deep=deep, index_dir=index_dir, jobs=jobs, executor=executor, progress=progress
    )
    if (shar := shar_files(source, format_name=format)) is not None:
        return _verified_shar(shar, check, decode=decode, how=how)
    spec = spec_of(source) or spec_of_tokens(source, format, options)
    if spec is not None:
        found, kind = spec.files(format, index_dir=index_dir)
        options = spec.narrowed(options, kind)
    else:
        found = find_data(source, format_name=format)
        kind = format_of_all(found) if format is None else format_named(format)
    kind = kind.resolved(options, found)
    asked = [source] if isinstance(source, str | os.PathLike) else source
    folders = {_as_root(os.fsdecode(path)) for path in asked if paths.is_folder(os.fsdecode(path))}
    verified = check(found, kind.scanner, folders=folders)
    if deep:
        content = _of_places(verified.good, kind).problems()
        verified = replace(verified, problems=(*verified.problems, *content))
    if not decode:
        return verified
    return _decoded(verified, _records(verified.good, kind, options), how)


def _as_root(path: str) -> str:
    return path.rstrip("/") if "://" in path else os.path.abspath(path)


def verify_sources(
    node: Node,
    *,
    deep: bool,
    decode: bool,
    index_dir: str | os.PathLike[str] | None,
    jobs: int | None,
    executor: Executor | None,
    progress: ProgressHook | None,
) -> Verification:
    """Return the problems of the data files of all sources of a pipeline; see `verify`."""
    found = Verification(0, 0, 0, (), (), ())
    how = _Run(jobs, executor, progress)
    check = partial(
        verify_files, deep=deep, index_dir=index_dir, jobs=jobs, executor=executor, progress=progress
    )
    for source in (part for leaf in leaves_of(node) for part in leaf.parts):
        if not isinstance(source, FilesLeaf):
            continue
        verified = check(list(_found(source.files)), source.finder)
        good = source.over(verified.good)
        if deep:
            verified = replace(verified, problems=(*verified.problems, *good.problems()))
        if decode:
            verified = _decoded(verified, good, how)
        found = _together(found, verified)
        if others := [run for files in source.beside() for run in _found(files)]:
            found = _together(found, check(others, source.finder))
    return found


def _verified_shar(
    shar: SharFiles,
    check: Callable[..., Verification],
    *,
    decode: bool,
    how: _Run,
) -> Verification:
    """Return the problems of the files of a Shar, of each by itself and of all together."""
    found = Verification(0, 0, 0, (), (), ())
    good: dict[tuple[FoundFiles, ...], FileSet] = {}
    for field in (shar.cuts, *shar.fields):
        verified = check(field.found, format_of_field(field).scanner)
        good[field.found] = verified.good
        found = _together(found, verified)
    if found.problems:
        return found
    unequal = [
        VerificationProblem("record", path, message)
        for field in shar.fields
        for path, message in unequal_files(good[shar.cuts.found], good[field.found], field.name)
    ]
    if unequal or not decode:
        return replace(found, problems=tuple(unequal))
    options = SourceOptions(shown="")
    source = open_shar(shar, options, index=lambda runs, _: good[tuple(runs)], with_keys=lambda lines: lines)
    return _decoded(found, source, how)


def _found(files: FileSet) -> Iterator[FoundFiles]:
    names = iter(files.names())
    for root, _, count in files.runs:
        yield FoundFiles(root, tuple(islice(names, count)))


def _together(one: Verification, other: Verification) -> Verification:
    return Verification(
        one.files + other.files,
        one.records + other.records,
        one.bytes + other.bytes,
        tuple(dict.fromkeys((*one.folders, *other.folders))),
        tuple(dict.fromkeys((*one.problems, *other.problems))),
        (*one.indexed, *other.indexed),
    )


def _decoded(verified: Verification, records: _Decodable, how: _Run) -> Verification:
    """Return a verification with the records that cannot be decoded among its problems."""
    bad = _undecodable(records, how)
    problems = [_problem(error, count) for error, count in bad.values()]
    return replace(verified, problems=(*verified.problems, *problems))


def _records(files: FileSet, kind: Format, options: SourceOptions) -> FilesLeaf:
    if is_table_indexer(kind.scanner):
        return _of_places(files, kind)  # Tables whose types do not go together are verified all the same.
    records: FilesLeaf = kind.source(options)(files)
    return records


def _of_places(files: FileSet, kind: Format) -> FilesLeaf:
    """Return the source of files, without the checks of how records are decoded."""
    found: FilesLeaf = kind.found_again(files, {"format": kind.name}, "")
    return found


def _undecodable(records: _Decodable, how: _Run) -> Bad:
    bad: Bad = {}
    using = execution_options(how.jobs, how.executor, at_once=False)
    with closing(map_ranges(records.bad_rows, records.size, using=using)) as runs:
        for row, found in runs:
            for path, (error, count) in found.items():
                first, before = bad.get(path, (error, 0))
                bad[path] = first, before + count
            if how.progress:
                files = len(records.files)
                how.progress(Progress(0, files, 0, 0, row, task="decoding", rows=records.size))
    return bad


def _problem(error: CorruptRecord, count: int) -> VerificationProblem:
    others = f"; of this file {count:,} records cannot be decoded" if count > 1 else ""
    what = (
        f"it cannot be decoded: {type(error.cause).__name__}: {error.cause}; it starts with {error.preview!r}"
    )
    return VerificationProblem("record", error.path, f"{what}{others}", row=error.row, offset=error.offset)
