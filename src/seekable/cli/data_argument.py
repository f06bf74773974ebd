"""The dataset that the options of a command name, and the folder of its index."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from seekable import formats
from seekable.cli.progress_output import BuildWatch
from seekable.dataset.dataset import Dataset
from seekable.dataset.open import open as open_dataset
from seekable.dataset.pipeline.pipeline_file import is_pipeline_file, needed_names, read_pipeline
from seekable.errors import InvalidArgument, SeekableError, UnsupportedFormat
from seekable.formats.shar.shar_source import DataSource
from seekable.formats.tar.fields.decode_argument import checked_decode
from seekable.formats.tar.sample_source import SampleSource
from seekable.index.index_location import Index
from seekable.nodes.bases import leaves_of
from seekable.storage.access import Storage
from seekable.storage.mapped import MOST_OPEN_FILES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Executor

    from seekable.nodes.node import Node
    from seekable.parallel.progress import ProgressHook

_WITH_FOLDERS = {
    "arrow": "Tables",
    "csv": "Csv",
    "jsonl": "Jsonl",
    "parquet": "Tables",
    "tar": "Tar",
    "text": "Text",
    "tokens": "Tokens",
    "tsv": "Csv",
}
"""The class of the value of each format that has folders as columns, in ``sk.formats``."""


@dataclass(frozen=True)
class Opening:
    """One PATH and the options with which it is opened."""

    path: str
    format: str | None = field(kw_only=True)
    index_dir: str | None = field(kw_only=True)
    jobs: int | None = field(kw_only=True)
    allow: list[str] | None = field(default=None, kw_only=True)
    """The folders whose files lists may name besides those below their own."""

    progress: bool = field(kw_only=True)
    """True if a progress bar may be drawn."""

    quiet: bool = field(kw_only=True)
    key: str | None = field(default=None, kw_only=True)
    partitions: Literal["hive"] | None = field(default=None, kw_only=True)
    holder: str | None = field(default=None, kw_only=True)
    dtype: str | None = field(default=None, kw_only=True)
    eos: int | None = field(default=None, kw_only=True)
    bos: int | None = field(default=None, kw_only=True)
    most_bytes: int | None = field(default=None, kw_only=True)
    publish: bool = field(default=False, kw_only=True)
    refresh: bool = field(default=True, kw_only=True)
    """True to list stores; False to take the lists that were kept."""

    max_open_files: int = field(default=MOST_OPEN_FILES, kw_only=True)

    hook: ProgressHook | None = field(default=None, kw_only=True)
    """Is called with the progress of index builds, too."""

    executor: Executor | None = field(default=None, kw_only=True)
    """Does the work of opening, in place of processes of this machine."""

    @cached_property
    def watch(self) -> BuildWatch:
        """The reporter of this opening's index builds."""
        return BuildWatch(bar=self.progress, notices=not self.quiet, hook=self.hook)

    @property
    def expression(self) -> str:
        """The call that opens the same data in Python."""
        if is_pipeline_file(self.path):
            return f"sk.load_dataset({self.path!r})"
        tokens = {"dtype": self.dtype, "eos": self.eos, "bos": self.bos}
        options = [f"{name}={value!r}" for name, value in tokens.items() if value is not None]
        arguments = [f"format=sk.formats.Tokens({', '.join(options)})"] if options else []
        if self.format is not None and not options:
            arguments.append(f"format={self.format!r}")
        index: list[str] = []
        if self.index_dir is not None:
            index.append(f"folder={self.index_dir!r}")
        if self.allow:
            index.append(f"allow={self.allow!r}")
        if index:
            arguments.append(f"index=sk.Index({', '.join(index)})")
        return f"sk.open({', '.join([repr(self.path), *arguments])})"

    def open(self) -> Node:
        """Index new and changed files; return their source, or the pipeline of a pipeline file.

        Raises:
            InvalidArgument: a pipeline needs functions or sequences, or an option is for data alone.
        """
        return self.dataset().node

    def _pipeline(self) -> Node:
        self.refuse_options()
        needed = [name for names in needed_names(self.path) for name in names]
        if needed:
            message = (
                f"{self.path!r} needs {', '.join(map(repr, needed))}, which no command can have: in Python, "
                f"sk.load_dataset({self.path!r}, functions=..., sequences=...); `seekable export` takes a "
                f"module:function that returns it"
            )
            raise InvalidArgument(message)
        return self.order(order_only=False)

    def refuse_options(self) -> None:
        """Refuse the options that say how data is opened.

        Raises:
            InvalidArgument: there is such an option.
        """
        given: dict[str, object] = {
            "--format": self.format,
            "--key": self.key,
            "--partitions": self.partitions,
        }
        given |= {"--dtype": self.dtype, "--eos": self.eos, "--bos": self.bos}
        for option in (option for option, value in given.items() if value is not None):
            message = f"{self.path!r} is a pipeline file, which says how data is opened: leave {option} out"
            raise InvalidArgument(message)

    def order(self, *, root: list[str] | None = None, order_only: bool = True) -> Node:
        """Return the pipeline of a pipeline file, of which no record is read unless ``order_only`` is False.

        Args:
            root: the folders in which the data files are now.
            order_only: True if the functions of the pipeline are not needed.
        """
        try:
            return read_pipeline(
                self.path,
                functions=None,
                sequences=None,
                root=root,
                allow_changed=False,
                index_dir=self.index_dir,
                progress=self.watch,
                order_only=order_only,
                allow=self.allow,
            )
        finally:
            self.watch.close()

    def sources(self) -> list[DataSource]:
        """Index new and changed files; return their source, or all sources of files of a pipeline file."""
        if is_pipeline_file(self.path):
            self.refuse_options()
        node = self.order() if is_pipeline_file(self.path) else self.open_data()
        return [leaf for leaf in leaves_of(node) if isinstance(leaf, DataSource)]

    def open_data(self) -> DataSource:
        """Index new and changed files, and return their source; of Energon also with the excluded samples.

        Raises:
            InvalidArgument: it is a pipeline file.
        """
        if is_pipeline_file(self.path):
            message = f"{self.path!r} is a pipeline file and no data; name the data itself"
            raise InvalidArgument(message)
        (source,) = leaves_of(self.dataset().node)
        assert isinstance(source, DataSource)
        return source

    def dataset(self) -> Dataset:
        """Index new and changed files, and return the dataset; or that of a pipeline file.

        Raises:
            InvalidArgument: as of ``open``.
        """
        if is_pipeline_file(self.path):
            return Dataset(self._pipeline())
        try:
            return self._opened(None)
        except UnsupportedFormat:
            pickled = self._pickled_fields()
            if not pickled:
                raise
            return self._opened(dict.fromkeys(pickled, "bytes"))
        finally:
            self.watch.close()

    def _opened(self, decode: Mapping[str, str] | Literal["bytes"] | None) -> Dataset:
        return open_dataset(
            self.path,
            format=self._format,
            decode=decode,
            key=self.key,
            index=Index(
                folder=self.index_dir,
                jobs=self.jobs,
                executor=self.executor,
                publish=self.publish,
                most_bytes=self.most_bytes,
                allow=self.allow,
            ),
            storage=Storage(refresh=self.refresh, max_open_files=self.max_open_files),
            progress=self.watch,
        )

    @cached_property
    def _format(self) -> str | formats.Format | None:
        """The name of the format, or its value with the options of the command."""
        if self.holder is not None:
            return f"{self.format}-{self.holder}" if self.format else formats.Kaldi(holder=self.holder)
        if any(option is not None for option in (self.dtype, self.eos, self.bos)):
            return formats.Tokens(dtype=self.dtype, eos=self.eos, bos=self.bos, partitions=self.partitions)
        if self.partitions is None:
            return self.format
        without = replace(self, partitions=None, key=None, publish=False)
        name = self.format or without.open_data().files.entry(0).format
        kind = _WITH_FOLDERS.get(name.partition("-")[0])
        if kind is None:
            message = f"--partitions is for formats whose records are dicts, and this is {name}: leave it out"
            raise InvalidArgument(message)
        value: formats.Format = getattr(formats, kind)(partitions=self.partitions)
        return value

    def _pickled_fields(self) -> list[str]:
        """Return the fields of archives that are never loaded: commands take their bytes."""
        with warnings.catch_warnings(), suppress(SeekableError):
            warnings.simplefilter("ignore")
            node = self._opened("bytes").node
            leaves = [leaf for leaf in leaves_of(node) if isinstance(leaf, SampleSource)]
            default = checked_decode(None)
            return [field for leaf in leaves for field in leaf.fields if default.of(field).refusal]
        return []
