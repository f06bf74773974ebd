"""From files to a dataset."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seekable.dataset.hub_files import hub_files
from seekable.dataset.show import listed
from seekable.dataset.specs import (
    HubSpec,
    TextSpec,
    column_decoder,
    columns_of,
    format_of_spec,
    refuse_specs_among,
    spec_of,
    text_files,
)
from seekable.errors import DuplicateKeys, UnsupportedFormat, WrongType
from seekable.formats.decoding import Decode, decoder_named
from seekable.formats.registry import Format, find_data, format_named, format_of
from seekable.index.opening import open_files
from seekable.index.surveyor import is_surveyor
from seekable.nodes.keys.build import open_keys
from seekable.nodes.keys.duplicates import duplicates_told
from seekable.nodes.sources.columnar.asked import checked_for_tables, refuse_for_lines
from seekable.nodes.sources.columnar.source import MOST_OPEN_FILES, TableSource
from seekable.nodes.sources.files import FileSource
from seekable.parallel.map_ranges import execution_options
from seekable.parallel.progress import progress_or_bar
from seekable.storage.compression import COMPRESSED, compression_of, uncompressed_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from seekable.dataset.base import Dataset
    from seekable.index.fileset import FileSet
    from seekable.nodes.keys.key import KeyOf
    from seekable.nodes.sources.files import OnError
    from seekable.parallel.progress import ProgressHook
    from seekable.storage.listing import Asked, Found

__all__ = ["format_of_all", "open"]


def open(  # noqa: PLR0913 - the one public place that owns these defaults
    source: Asked,
    *,
    format: str | None = None,  # noqa: A002 - what users call it
    decode: Decode | None = None,
    version: str | int | None = None,
    index_dir: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: ProgressHook | None = None,
    key: KeyOf | None = None,
    errors: OnError | None = None,
    columns: Sequence[str] | None = None,
    strict: bool = False,
    max_open_files: int = MOST_OPEN_FILES,
) -> Dataset:
    r"""Return a dataset over files, after indexing those that are new or changed.

    The index lies in ``.seekable`` beside the data; where that folder cannot be written, in the user's cache
    folder. A second call costs one stat a file.

    Args:
        source: a path, a folder (its data files by known suffix, in natural order), a glob, or a list of
            those; or ``hf:REPO:SPLIT:COLUMN``, the Parquet files of a split on the Hugging Face Hub (all
            columns without ``:COLUMN``; ``REPO@REVISION`` for a commit, a branch or a tag, ``CONFIG/SPLIT``
            where a repository has several datasets), or ``txt:PATH:COLUMN``, lines as records of one column.
        format: ``"jsonl"``, ``"text"``, ``"parquet"`` and so on; told by the suffix if left out.
        decode: of lines ``"json"``, ``"text"`` (a str), ``"bytes"``, or a function of a line's bytes, which
            is called when a record is read; of tables ``"python"`` (dicts of Python values), ``"numpy"``
            (dicts of numpy's) or ``"arrow"`` (record batches). The format's own if left out.
        version: enters the fingerprint beside the name of a ``decode`` function; stands for its code, and for
            that of a ``key`` function, where keys are kept.
        index_dir: a folder for indexes, instead of beside the data; also ``SEEKABLE_INDEX_DIR``.
        jobs: how many processes may index; by default one for each processor, and none below 1 GiB.
        executor: any ``concurrent.futures.Executor`` to index with instead.
        progress: called as the indexing goes on; by default a bar on a terminal.
        key: what the key of a record is, for ``ds.key``: the name of a field, or a function of the record; a
            str or an int. Keys are read once and kept beside the index, 16 bytes a record.
        errors: called with the ``CorruptRecord`` of a record that cannot be decoded; returns what to deliver
            instead, or ``sk.HOLE``, which keeps its position and which a ``Loader`` leaves out of batches. It
            does not enter the fingerprint: a run that stopped at such a record goes on with it.
        columns: of tables, the names of the columns to read, in the order in which records have them; nothing
            is read of the others.
        strict: of tables, whether all files must have the same columns of the same types. Else records have
            the columns of all files, None where a file lacks one, in types that hold all values.
        max_open_files: of tables, how many files are kept open.

    Raises:
        DataNotFound: there is no such file, repository or split, or no data file in the folder.
        Unreachable: it is on the Hub, which cannot be reached, and not on this machine.
        UnsupportedFormat: a suffix is not known, there is more than one format, a file is not what its name
            says or lies beside its compressed copy, a ``.zst`` has no frames that it could be entered at, or
            columns of tables do not go together.
        BadKey: a record has no key.

    Warns:
        DuplicateKeys: some records have the same key.

    Example:
        >>> import pathlib, tempfile, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "a.jsonl").write_text('{"id": 0}\n{"id": 1}\n')
        ...     ds = sk.open(folder)
        ...     len(ds), ds[1], ds.locate(1).offset
        (2, {'id': 1}, 10)
    """
    spec = spec_of(source)
    if spec is None:
        refuse_specs_among(source)
        found = find_data(source)
        kind = format_of_all(found) if format is None else format_named(format)
    else:
        found = text_files(spec) if isinstance(spec, TextSpec) else ()
        kind = format_of_spec(spec, format)
    _refuse_twins(found)
    make = _maker(
        kind,
        _shown(source),
        column=spec.column if isinstance(spec, TextSpec) else None,
        decode=decode,
        version=version,
        errors=errors,
        columns=columns_of(spec, columns) if isinstance(spec, HubSpec) else columns,
        strict=strict,
        max_open_files=max_open_files,
    )
    with progress_or_bar(progress) as shown:
        if isinstance(spec, HubSpec):
            found = hub_files(spec, index_dir=index_dir, progress=shown)
        files = open_files(
            found, kind.scanner, index_dir=index_dir, jobs=jobs, executor=executor, progress=shown
        )
    opened = make(files)
    if key is None:
        return opened
    using = execution_options(jobs, executor, at_once=False)
    keys = open_keys(opened, key, index_dir=index_dir, using=using, progress=progress)
    if keys.index.duplicates:
        warnings.warn(duplicates_told(opened, keys), DuplicateKeys, stacklevel=2)
    return replace(opened, keys=keys)


def _maker(
    kind: Format,
    asked: str,
    *,
    column: str | None,
    decode: Any,
    version: str | int | None,
    errors: OnError | None,
    **of_tables: Any,
) -> Callable[[FileSet], FileSource | TableSource]:
    """Return what makes a dataset of the files, once they are indexed; wrong arguments are refused before.

    Raises:
        InvalidArgument: an argument breaks a rule, or is for another kind of format.
        WrongType: it is of another type.
    """
    if errors is not None and not callable(errors):
        message = f"errors must be a function of a CorruptRecord (got {errors!r})"
        raise WrongType(message)
    form = kind.scanner
    if is_surveyor(form):
        given = checked_for_tables(decode=decode, **of_tables)
        return lambda files: TableSource(
            files, form, asked=asked, version=version, errors=errors, **given
        ).checked()
    refuse_for_lines(kind.name, **of_tables)
    if column is not None:
        decoder = column_decoder(column, decode)
    else:
        decoder = decoder_named(kind.decode if decode is None else decode, kind.name)
    return lambda files: FileSource(
        files, decoder, format=kind.name, asked=asked, version=version, errors=errors
    )


def format_of_all(found: Sequence[Found]) -> Format:
    """Return the one format of all files.

    Raises:
        UnsupportedFormat: a suffix is not known, or there is more than one format.
    """
    formats: dict[str, tuple[Format, str]] = {}
    for run in found:
        for suffix, name in {_suffix(name): name for name in run.names}.items():
            kind = format_of(name if suffix else os.path.basename(name))
            formats.setdefault(kind.name, (kind, name))
    if len(formats) > 1:
        examples = ", ".join(f"{kind.name} ({name})" for kind, name in formats.values())
        message = (
            f"a dataset has one format, and here there are {len(formats)}: {examples}. Open them apart and "
            f"combine them with sk.concat or sk.mix, or say what all are with format="
        )
        raise UnsupportedFormat(message)
    (kind, _), *_ = formats.values()
    return kind


def _suffix(name: str) -> str:
    """Return the end of a name that tells of the format, in lower case: of compressed files both suffixes."""
    stem, suffix = os.path.splitext(name)
    return (os.path.splitext(stem)[1] + suffix if compression_of(name) else suffix).lower()


def _refuse_twins(found: Sequence[Found]) -> None:
    """Refuse a file beside its compressed copy: each record would come twice, and nobody would know.

    Raises:
        UnsupportedFormat: there is such a pair.
    """
    for run in found:
        compressed = [name for name in run.names if compression_of(name)]
        names = set(run.names) if compressed else set()
        for name in compressed:
            twins = {uncompressed_name(name), *(f"{uncompressed_name(name)}.{kind}" for kind in COMPRESSED)}
            if twin := min((twins - {name}) & names, default=None):
                message = (
                    f"{twin!r} and {name!r} in {run.root!r} look like the same data twice, compressed and "
                    f"not: keep one of them there, or say which with a glob or a list"
                )
                raise UnsupportedFormat(message)


def _shown(source: Asked) -> str:
    """Return what was asked for as a user would write it."""
    if isinstance(source, str | os.PathLike):
        return repr(os.fspath(source))
    paths = [os.fspath(path) for path in source]
    return f"[{listed([repr(path) for path in paths])}]"
