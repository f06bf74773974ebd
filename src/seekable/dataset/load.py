"""The function ``load_pipeline``: a pipeline file becomes a dataset again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable._arguments import checked_flag, explains_keywords
from seekable._other_words import STORAGE
from seekable.dataset.dataset import Dataset
from seekable.dataset.pipeline.pipeline_file import read_pipeline
from seekable.parallel.progress import progress_or_bar

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from seekable.formats.contract import Pipes
    from seekable.parallel.progress import ProgressChoice
    from seekable.storage.access import Storage

    Path = str | os.PathLike[str]

__all__ = ["load_pipeline"]


@explains_keywords(STORAGE)
def load_pipeline(  # noqa: PLR0913 - the one public place that owns these defaults
    path: Path,
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    sequences: Mapping[str, Any] | None = None,
    root: Path | Sequence[Path] | Mapping[str, Path] | None = None,
    allow_changed: bool = False,
    index_dir: Path | None = None,
    progress: ProgressChoice = None,
    pipes: Pipes = "refuse",
    storage: Storage | None = None,
    allow: Path | Sequence[Path] | None = None,
) -> Dataset:
    """Return the dataset that ``ds.save`` wrote to a pipeline file.

    It has the fingerprint of the saved one, so states of the one resume in the other. Nothing that the file
    contains is run, and no name in it is imported.

    Args:
        path: the pipeline file.
        functions: the functions of the pipeline, by their names in the file: ``"module.function"``, or the
            last part of that where it is the only one. A function that was moved or renamed keeps the name of
            the file in the fingerprint. Names that the file lacks are left alone.
        sequences: the sequences of ``from_sequence``, by their names in the file: the version, or the type
            where there was none.
        root: the folder in which the data files are now, as a path or an address, or several; or a dict of
            old folders and new ones. Files that are not there are looked for where they were, and beside the
            pipeline file if both were moved together.
        allow_changed: take data that has changed since as it is now; the dataset then has another
            fingerprint. Rows and lengths that were computed from the old data are refused all the same.
        index_dir: a folder for indexes, as in ``sk.open``.
        progress: called with the progress of indexing; by default a bar on a terminal.
        pipes: ``"allow"`` runs the commands in Kaldi's scripts, as in ``sk.open``; the file does not say it.
        storage: how the stores of addresses are reached, ``sk.Storage(options=...)`` or
            ``sk.Storage(filesystem=...)``; the file does not say it.
        allow: folders, as in ``sk.Index``: addresses below them are read where the file, or a script of Kaldi
            in a store, names them. Of themselves they name only what lies below their own folder.

    Raises:
        InvalidArgument: functions or sequences are missing; the message lists all of them.
        StateMismatch: data has changed, or the file was edited; the message shows the difference.
        DataNotFound: the pipeline file, a data file or a file of rows is not found.
        CorruptState: the file, or a file of rows, was cut or changed.
        UnsupportedFormat: it is not a pipeline file, or one of a newer version of seekable.

    Example:
        >>> import tempfile, seekable as sk
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sk.from_sequence(range(10), version="digits").shuffle(seed=7).save(f"{folder}/order.json")
        ...     ds = sk.load_pipeline(f"{folder}/order.json", sequences={"digits": range(10)})
        ...     len(ds)
        10
    """
    with progress_or_bar(progress) as shown:
        return Dataset(
            read_pipeline(
                path,
                functions=functions,
                sequences=sequences,
                root=root,
                allow_changed=checked_flag("allow_changed", allow_changed),
                index_dir=index_dir,
                progress=shown,
                pipes=pipes,
                storage=storage,
                allow=allow,
            )
        )
