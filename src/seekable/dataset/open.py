"""The function ``open``: it indexes files and returns a dataset over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from seekable._arguments import explains_keywords
from seekable.dataset.open_source import Opening, shown_source
from seekable.errors import WrongType
from seekable.formats.contract import Format, Reading
from seekable.index.index_location import Index
from seekable.index.opening import Indexing
from seekable.storage.access import Storage
from seekable.storage.far import far
from seekable.storage.listing import checked_asked, has_addresses
from seekable.storage.trust import checked_allow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.dataset.dataset import Dataset
    from seekable.formats.contract import OnError
    from seekable.nodes.files.decoder import AskedDecoder, Decode
    from seekable.nodes.key import KeyOf
    from seekable.parallel.progress import ProgressHook
    from seekable.storage.listing import Asked

__all__ = ["open"]

T = TypeVar("T", Index, Storage)

_OF_FORMATS = {
    **dict.fromkeys(("delimiter", "quote", "encoding"), "Csv"),
    **dict.fromkeys(("group", "splitname", "missing", "concatenated", "suffix"), "Tar"),
    **dict.fromkeys(("dtype", "eos", "bos"), "Tokens"),
    **dict.fromkeys(("holder", "pipes"), "Kaldi"),
    "strict": "Tables",
}
_OF_INDEX = {"index_dir": "folder", **dict.fromkeys(("jobs", "executor", "publish", "most_bytes", "allow"))}
_OF_STORAGE = {"storage_options": "options", **dict.fromkeys(("cache", "pin", "refresh", "max_open_files"))}
_ELSEWHERE = {
    **{name: f"format=sk.formats.{kind}({name}=...)" for name, kind in _OF_FORMATS.items()},
    **{name: f"index=sk.Index({to or name}=...)" for name, to in _OF_INDEX.items()},
    **{name: f"storage=sk.Storage({to or name}=...)" for name, to in _OF_STORAGE.items()},
    "partitions": "format=sk.formats.Tables(partitions=...), or that of Jsonl, Text, Csv, Tar or Tokens",
    "split": "hf:REPO:SPLIT as the source, or ds.split({...}, seed=0)",
    "streaming": "ds.stream() of what is returned; no record is read before it is asked for",
    "shuffle": "ds.shuffle(seed=0)",
    "num_workers": "sk.Loader(ds, workers=...), or index=sk.Index(jobs=...)",
    "data_files": "the files as the source",
}
"""Where a value goes that people give to ``open`` itself."""


@explains_keywords(_ELSEWHERE)
def open(  # noqa: PLR0913 - the one public place that owns these defaults
    source: Asked | Mapping[str, Asked],
    *,
    format: str | Format | None = None,  # noqa: A002 - the public name
    decode: Decode | Mapping[str, AskedDecoder] | None = None,
    columns: Sequence[str] | None = None,
    key: KeyOf | None = None,
    errors: OnError | None = None,
    version: str | int | None = None,
    index: Index | None = None,
    storage: Storage | None = None,
    progress: ProgressHook | None = None,
) -> Dataset:
    r"""Return a dataset over files, after indexing those that are new or changed.

    The index lies in ``.seekable`` beside the data; where that folder cannot be written, and for data in a
    store, in the user's cache folder. A second call costs one stat a file, or a listing of the store.

    Args:
        source: a path, a folder (its data files by known suffix, in natural order), a glob, or a list of
            those, on this machine or as addresses of stores: ``s3://BUCKET/KEY``, ``gs://``, ``az://``, and
            ``https://`` without globs and folders; or
            ``hf:REPO:SPLIT:COLUMN``, the data files of a split on the Hugging Face Hub (all
            columns without ``:COLUMN``; ``REPO@REVISION`` for a commit, a branch or a tag, ``CONFIG/SPLIT``
            where a repository has several datasets), ``txt:PATH:COLUMN``, lines as records of one column,
            ``kaldi:DIR``, the utterances of a data directory of Kaldi as dicts of what its tables have,
            ``shar:DIR``, or the folder itself, the cuts of a Shar of Lhotse with their payloads, also a dict
            of the files of ``"cuts"`` and of other fields,
            ``megatron:PREFIX``, the documents of ``PREFIX.bin`` as ``PREFIX.idx`` has them, and
            ``tokens:PATH``, those of any files of tokens, as dicts with an array ``"tokens"``; both may be
            globs or folders,
            ``energon:DIR:SPLIT``, the shards of a split of a dataset of Energon, without excluded samples,
            ``wids:PATH``, the shards that a list of wids names,
            ``x.idxpack`` or ``idxpack:PATH:NUMBER``, the files that a pack of Lhotse's indexes names, or a
            rspecifier of Kaldi over files, ``scp:feats.scp`` or ``ark:feats.*.ark``. Of its options ``p``
            delivers a hole, with a warning, for an entry that cannot be read; the others change nothing.
            Paths may have braces, ``train-{000..099}.tar`` or ``{a,b}/*.tar``; each must exist then.
            A dict of sources, ``{"image": "a/*.tar", "caption": "b/*.tar"}``, is for sibling archives: tar
            files whose samples of one key are one record, shard by shard.
        format: ``"jsonl"``, ``"text"``, ``"parquet"`` and so on; found by the suffix if left out.
            With it, a folder that is a dataset of another tool counts as a plain folder. What one format
            alone knows is an option of a value: ``sk.formats.Tar(group="key")``, ``Csv(delimiter="|")``,
            ``Tables(strict=True)``, ``Tokens(dtype="uint16")``, ``Kaldi(holder="matrix")``.
        decode: of lines ``"json"``, ``"text"`` (a str), ``"bytes"``, or a function of a line's bytes, which
            is called when a record is read; of tables ``"python"`` (dicts of Python values), ``"numpy"``
            (dicts of numpy's) or ``"arrow"`` (record batches); of tar files ``"bytes"``, ``"webdataset"``,
            ``"audio"``, the name of a form of images such as ``"pil"`` or ``"rgb8"``, or a dict from fields
            to names of decoders and functions of bytes; of Shar also ``"lhotse"``, which makes cuts of
            Lhotse. The format's own if left out.
        columns: of tables, of samples of tar files, and of the utterances of ``kaldi:DIR``, the names of the
            columns to read, in the order in which records have them; nothing is read of the others.
        key: the key of a record, for ``ds.key``: the name of a field, or a function of the record, which
            gives a str or an int. Keys are read once and written beside the index, 16 bytes a record.
        errors: called with the ``CorruptRecord`` of a record that cannot be decoded; returns what to deliver
            instead, or ``sk.HOLE``, which keeps its position and which a ``Loader`` leaves out of batches. It
            does not enter the fingerprint: a run that stopped at such a record goes on with it.
        version: enters the fingerprint beside the name of a ``decode`` function or a holder; stands for its
            code, and for that of a ``key`` function, where keys are kept.
        index: how files are indexed, and where: `sk.Index`.
        storage: how files are reached: `sk.Storage`.
        progress: called with the progress of the indexing; by default a bar on a terminal.

    Raises:
        InvalidArgument: two arguments exclude each other, or the index needs more than ``most_bytes``.
        DataNotFound: there is no such file, repository or split, or no data file in the folder.
        Unreachable: it is in a store or on the Hub, which cannot be reached, and not on this machine.
        CorruptTable: it is a data directory of Kaldi, and its tables do not go together.
        UnsupportedFormat: a suffix is not known, there is more than one format, a file is not what its name
            says or lies beside its compressed copy, a ``.zst`` has no frames that it could be entered at,
            columns of tables do not go together, or it is a folder of another tool, a spec or an address that
            is not read.
        AccessDenied: the data may not be read, or the credentials of a store do not permit it.
        MissingDependency: the data is in a store, and obstore is not installed.
        WrongType: the source is neither a path nor a list of paths.
        BadKey: a record has no key.

    Warns:
        DuplicateKeys: some records have the same key. Other fields in other files of JSON lines are logged.

    Example:
        >>> import pathlib, tempfile, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "a.jsonl").write_text('{"id": 0}\n{"id": 1}\n')
        ...     ds = sk.open(folder)
        ...     len(ds), ds[1], ds.locate(1).offset
        (2, {'id': 1}, 10)
    """
    checked: Any = (
        {name: checked_asked(asked) for name, asked in source.items()}
        if isinstance(source, Mapping)
        else checked_asked(source)
    )
    how = _checked("index", index, Index)
    reach = _checked("storage", storage, Storage)
    if format is not None and not isinstance(format, str | Format):
        message = f"format must be a name, or a value such as sk.formats.Tar() (got {format!r:.200})"
        raise WrongType(message)
    reading = Reading(
        shown=shown_source(checked),
        decode=decode,
        columns=columns,
        errors=errors,
        version=version,
        allow=checked_allow(how.allow),
        most_open_files=reach.max_open_files,
    )
    indexing = Indexing(
        how.folder,
        how.jobs,
        how.executor,
        progress,
        how.most_bytes,
        how.publish,
        reach.pin == "version",
    )
    opening = Opening(reading, indexing, format, key, is_sampled=how.sampled)
    if not has_addresses(checked) and not reach.is_for_stores:
        return opening.dataset(checked)
    with far().opened(checked, reach, index_dir=how.folder) as renamed:
        return opening.dataset(renamed)


def _checked(name: str, given: T | None, kind: type[T]) -> T:
    """Return a value, by default one with the defaults of its class.

    Raises:
        WrongType: it is something else.
    """
    if given is not None and not isinstance(given, kind):
        message = f"{name} must be a sk.{kind.__name__}(...), or left out (got {given!r:.200})"
        raise WrongType(message)
    return kind() if given is None else given
