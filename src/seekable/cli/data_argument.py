"""The dataset that the options of a command name, and the folder of its index."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from seekable.cli.progress_output import BuildWatch
from seekable.dataset.dataset import Dataset
from seekable.dataset.open import open as open_dataset
from seekable.dataset.pipeline.pipeline_file import is_pipeline_file, needed_names, read_pipeline
from seekable.errors import InvalidArgument, SeekableError, UnsupportedFormat
from seekable.formats.shar.shar_source import DataSource
from seekable.formats.tar.fields.decode_argument import checked_decode
from seekable.formats.tar.sample_source import SampleSource
from seekable.nodes.bases import leaves_of
from seekable.storage.mapped import MOST_OPEN_FILES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Executor

    from seekable.nodes.contract import Node
    from seekable.parallel.progress import ProgressHook


@dataclass(frozen=True)
class Opening:
    """One PATH and the options with which it is opened."""

    path: str
    format: str | None = field(kw_only=True)
    index_dir: str | None = field(kw_only=True)
    jobs: int | None = field(kw_only=True)
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
    max_open_files: int = field(default=MOST_OPEN_FILES, kw_only=True)
    """True to list stores; False to take the lists that were kept."""

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
        given: dict[str, object] = {"format": self.format, "index_dir": self.index_dir, "dtype": self.dtype}
        given |= {"eos": self.eos, "bos": self.bos}
        arguments = [f"{name}={value!r}" for name, value in given.items() if value is not None]
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

    def _opened(self, decode: Mapping[str, str] | None) -> Dataset:
        return open_dataset(
            self.path,
            format=self.format,
            decode=decode,
            index_dir=self.index_dir,
            jobs=self.jobs,
            executor=self.executor,
            progress=self.watch,
            key=self.key,
            partitions=self.partitions,
            holder=self.holder,
            dtype=self.dtype,
            eos=self.eos,
            bos=self.bos,
            most_bytes=self.most_bytes,
            publish=self.publish,
            refresh=self.refresh,
            max_open_files=self.max_open_files,
        )

    def _pickled_fields(self) -> list[str]:
        """Return the fields of archives that are never loaded: commands take their bytes."""
        with warnings.catch_warnings(), suppress(SeekableError):
            warnings.simplefilter("ignore")
            node = open_dataset(
                self.path,
                format=self.format,
                decode="bytes",
                index_dir=self.index_dir,
                progress=self.watch,
                refresh=self.refresh,
            ).node
            leaves = [leaf for leaf in leaves_of(node) if isinstance(leaf, SampleSource)]
            default = checked_decode(None)
            return [field for leaf in leaves for field in leaf.fields if default.of(field).refusal]
        return []
