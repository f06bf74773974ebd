"""The verification of data files: against their index, and record by record."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from seekable._lazy import lazy
from seekable.dataset.open import shown_source
from seekable.errors import WrongType
from seekable.formats.classify import check_names, classify
from seekable.formats.contract import Format, Reading
from seekable.formats.table import card_named, format_class
from seekable.index.finder import is_table_indexer
from seekable.index.integrity import VerificationProblem
from seekable.index.verification import Verification, verify_files
from seekable.nodes.bases import leaves_of
from seekable.nodes.files.leaf import FilesLeaf
from seekable.parallel.map_ranges import execution_options, map_ranges
from seekable.parallel.progress import Progress
from seekable.storage.listing import FoundFiles
from seekable.storage.trust import checked_allow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Executor

    from seekable.errors import CorruptRecord
    from seekable.formats.contract import Claim
    from seekable.index.fileset import FileSet
    from seekable.index.finder import Finder
    from seekable.nodes.files.leaf import Bad
    from seekable.nodes.node import Node
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
    format: str | Format | None = None,  # noqa: A002 - what users call it
    deep: bool = False,
    decode: bool = False,
    index_dir: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: ProgressHook | None = None,
    dtype: Any = None,
    eos: int | None = None,
    bos: int | None = None,
    allow: object = None,
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
        allow: as of ``sk.Index``.

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
    given: str | Format | None = format
    if any(option is not None for option in (dtype, eos, bos)):
        given = _with_options(format, dtype=dtype, eos=eos, bos=bos)
    allowed = checked_allow(allow)
    claim = classify(source, given, shown=shown_source(source), allow=allowed, index_dir=index_dir)
    asked = [source] if isinstance(source, str | os.PathLike) else source
    folders = {_as_root(os.fsdecode(path)) for path in asked if paths.is_folder(os.fsdecode(path))}
    how = _Run(jobs, executor, progress)
    return claim.format.verified(claim, _Checking(how, deep, decode, index_dir, allowed, frozenset(folders)))


def _with_options(given: str | Format | None, **options: Any) -> Format:
    """Return the format of tokens with the options of the user.

    Raises:
        InvalidArgument: the user gave another format by its name.
        WrongType: the user gave a format as a value, which has options itself.
    """
    if isinstance(given, Format):
        message = f"options of the format go into format= (got {given!r} besides)"
        raise WrongType(message)
    form: Any = format_class(card_named("tokens"))(**options)
    made: Format = form if given is None else form.with_name(given)
    return made


@dataclass(frozen=True, slots=True)
class _Checking:
    """The arguments of a user for what is verified; see `seekable.formats.contract.Checking`."""

    how: _Run
    deep: bool
    decode: bool
    index_dir: str | os.PathLike[str] | None
    allow: tuple[str, ...]
    folders: frozenset[str]
    """The folders that the user named, whose other indexed files are looked for too."""

    def files(self, found: Sequence[FoundFiles], finder: Finder) -> Verification:
        """Return what is wrong with files and their index."""
        return self._files(found, finder, frozenset())

    def _files(self, found: Sequence[FoundFiles], finder: Finder, folders: frozenset[str]) -> Verification:
        return verify_files(
            found,
            finder,
            deep=self.deep,
            index_dir=self.index_dir,
            jobs=self.how.jobs,
            executor=self.how.executor,
            progress=self.how.progress,
            folders=folders,
        )

    def records(self, claim: Claim) -> Verification:
        """Return what is wrong with the files of a claim, and with their records if those are asked for."""
        form = claim.format.settled(claim.found)
        finder = form.finder
        check_names(form, finder)
        verified = self._files(claim.found, finder, self.folders)

        def source(reading: Reading) -> FilesLeaf:
            # Tables whose types do not go together are verified all the same.
            places = is_table_indexer(finder)
            found: FilesLeaf = (
                _of_places(verified.good, form) if places else form.leaf(verified.good, reading)
            )
            return found

        if self.deep:
            content = _of_places(verified.good, form).problems()
            verified = replace(verified, problems=(*verified.problems, *content))
        return self.decoded(verified, source)

    def decoded(self, verified: Verification, source: Callable[[Reading], Any]) -> Verification:
        """Return a verification with the records that cannot be decoded, if those are asked for."""
        return (
            _decoded(verified, source(Reading(shown="", allow=self.allow)), self.how)
            if self.decode
            else verified
        )


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
    """Return the problems in the data files that a pipeline reads; see `verify`."""
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
        found = found.with_those_of(verified)
        if others := [run for files in source.beside() for run in _found(files)]:
            found = found.with_those_of(check(others, source.finder))
    return found


def _found(files: FileSet) -> Iterator[FoundFiles]:
    names = iter(files.names())
    for root, _, count in files.runs:
        yield FoundFiles(root, tuple(islice(names, count)))


def _decoded(verified: Verification, records: _Decodable, how: _Run) -> Verification:
    """Return a verification with the records that cannot be decoded among its problems."""
    bad = _undecodable(records, how)
    problems = [_problem(error, count) for error, count in bad.values()]
    return replace(verified, problems=(*verified.problems, *problems))


def _of_places(files: FileSet, form: Format) -> FilesLeaf:
    """Return the source of files, without the checks of how records are decoded."""
    found: FilesLeaf = form.found_again(files, {"format": form.name}, "")
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
