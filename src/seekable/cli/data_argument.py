"""The dataset and the executor that the options of a command name."""

from __future__ import annotations

import os
import re
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from seekable._lazy import imported_module
from seekable.cli.named_values import field_values, format_kind, pairs_in, storage_values
from seekable.cli.output import BuildWatch
from seekable.cli.shared_options import DataOptions, Shown
from seekable.dataset.dataset import Dataset
from seekable.dataset.open import open as open_dataset
from seekable.dataset.pipeline.pipeline_file import is_pipeline_file, needed_names, read_pipeline
from seekable.errors import InvalidArgument, SeekableError, UnsupportedFormat, WrongType
from seekable.formats.classify import classify
from seekable.formats.shar.shar_source import DataSource
from seekable.formats.tar.field_decoders import checked_decode
from seekable.formats.tar.sample_source import SampleSource
from seekable.index.index_location import Index
from seekable.nodes.bases import leaves_of
from seekable.nodes.node import node_of
from seekable.storage.access import Storage
from seekable.storage.mapped import MOST_OPEN_FILES
from seekable.storage.trust import checked_allow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    from seekable.formats import Format
    from seekable.nodes.node import Node
    from seekable.parallel.progress import ProgressHook


@dataclass(frozen=True)
class DataArgument:
    """The data that a command names, and the options with which it is opened."""

    path: str
    options: DataOptions
    shown: Shown
    more: Sequence[str] = field(default=(), kw_only=True)
    """Further sources of the same dataset."""

    key: str | None = field(default=None, kw_only=True)
    jobs: int | None = field(default=None, kw_only=True)
    publish: bool = field(default=False, kw_only=True)
    max_open_files: int = field(default=MOST_OPEN_FILES, kw_only=True)

    hook: ProgressHook | None = field(default=None, kw_only=True)
    """Is called with the progress of index builds, too."""

    executor: Executor | None = field(default=None, kw_only=True)
    """Does the work of opening, in place of processes of this machine."""

    @cached_property
    def watch(self) -> BuildWatch:
        """The reporter of the index builds of this data."""
        return BuildWatch(shown=not self.shown.quiet, hook=self.hook)

    @property
    def expression(self) -> str:
        """The call that opens the same data in Python."""
        if is_pipeline_file(self.path):
            return f"sk.load_pipeline({self.path!r})"
        given = {"format": self.format if not isinstance(self.format, str) else None, "index": self.index}
        arguments = [
            f"{name}=sk.{'formats.' * (name == 'format')}{type(value).__name__}({_arguments_in(value)})"
            for name, value in given.items()
            if value is not None and _arguments_in(value)
        ]
        named = [f"format={self.format!r}"] if isinstance(self.format, str) else []
        return f"sk.open({', '.join([repr(self.path), *named, *arguments])})"

    @cached_property
    def index(self) -> Index:
        """The value of ``index=``: how the data is indexed, and where."""
        return index_of(self.options.index, jobs=self.jobs, executor=self.executor, publish=self.publish)

    @property
    def refresh(self) -> bool:
        """True if stores may be asked."""
        return Storage(**storage_values(self.shown.storage)).refresh

    @cached_property
    def format(self) -> str | Format | None:
        """The name of the format, or its value with the fields of ``--set``."""
        name, pairs = self.options.format, pairs_in("--set", self.options.set)
        if not pairs:
            return name
        kind = format_kind(name, pairs)
        if kind is None:
            index = self.index
            kind = type(classify(self.path, allow=checked_allow(index.allow), index_dir=index.folder).format)
        value = kind(**field_values("--set", kind, pairs))
        return value if name is None else value.with_name(name)

    def open(self) -> Node:
        """Index new and changed files; return their source, or the pipeline of a pipeline file.

        Raises:
            InvalidArgument: a pipeline needs functions or sequences, or an option is for data alone.
        """
        return node_of(self.dataset())

    def _pipeline(self) -> Node:
        self.refuse_options()
        needed = [name for names in needed_names(self.path) for name in names]
        if needed:
            raise InvalidArgument(
                f"{self.path!r} needs {', '.join(map(repr, needed))}, which no command can have: in Python, "
                f"sk.load_pipeline({self.path!r}, functions=..., sequences=...); `seekable export` takes a "
                f"module:function that returns it"
            )
        return self.order(order_only=False)

    def refuse_options(self) -> None:
        """Refuse the options that say how data is opened.

        Raises:
            InvalidArgument: there is such an option.
        """
        given = {"format": self.options.format, "set": self.options.set, "key": self.key}
        for name in (name for name, value in given.items() if value is not None):
            message = f"{self.path!r} is a pipeline file, which says how data is opened: leave --{name} out"
            raise InvalidArgument(message)

    def order(self, *, order_only: bool = True) -> Node:
        """Return the pipeline of a pipeline file; with ``order_only`` no record of it can be read."""
        try:
            return read_pipeline(
                self.path,
                functions=None,
                sequences=None,
                root=None,
                allow_changed=False,
                index_dir=self.index.folder,
                progress=self.watch,
                order_only=order_only,
                allow=self.index.allow,
            )
        finally:
            self.watch.close()

    def sources(self) -> list[DataSource]:
        """Index new and changed files; return their source, or all sources of files of a pipeline file."""
        if not is_pipeline_file(self.path):
            return [self.open_data()]
        self.refuse_options()
        return [leaf for leaf in leaves_of(self.order()) if isinstance(leaf, DataSource)]

    def open_data(self) -> DataSource:
        """Index new and changed files, and return their source; of Energon also with the excluded samples.

        Raises:
            InvalidArgument: it is a pipeline file.
        """
        if is_pipeline_file(self.path):
            raise InvalidArgument(f"{self.path!r} is a pipeline file and not data: name the data itself")
        (source,) = leaves_of(node_of(self.dataset()))
        assert isinstance(source, DataSource)
        return source

    def dataset(self) -> Dataset:
        """Index new and changed files, and return the dataset; or that of a pipeline file.

        Raises:
            InvalidArgument: as of ``open``.
        """
        if not self.more and is_pipeline_file(self.path):
            return Dataset(self._pipeline())
        try:
            return self.opened(None)
        except UnsupportedFormat:
            pickled = self._pickled_fields()
            if not pickled:
                raise
            return self.opened(dict.fromkeys(pickled, "bytes"))
        finally:
            self.watch.close()

    def opened(self, decode: Mapping[str, str] | Literal["bytes", "arrow"] | None) -> Dataset:
        """Return the dataset of files, with a decoding; that of the format for None."""
        return open_dataset(
            [self.path, *self.more] if self.more else self.path,
            format=self.format,
            decode=decode,
            key=self.key,
            index=self.index,
            storage=Storage(**{"max_open_files": self.max_open_files, **storage_values(self.shown.storage)}),
            progress=self.watch,
        )

    def _pickled_fields(self) -> list[str]:
        """Return the fields of archives that are never loaded: commands take their bytes."""
        with warnings.catch_warnings(), suppress(SeekableError):
            warnings.simplefilter("ignore")
            node = node_of(self.opened("bytes"))
            leaves = [leaf for leaf in leaves_of(node) if isinstance(leaf, SampleSource)]
            default = checked_decode(None)
            return [field for leaf in leaves for field in leaf.fields if default.of(field).refusal]
        return []


def index_of(texts: Sequence[str] | None, **others: Any) -> Index:
    """Return the value of ``index=`` that ``--index`` and other options stand for."""
    return Index(**field_values("--index", Index, pairs_in("--index", texts)), **others)


def index_folder(texts: Sequence[str] | None) -> str | None:
    """Return the folder that ``--index`` names, of a command that uses an index and builds none.

    Raises:
        InvalidArgument: it names something else.
    """
    index = index_of(texts)
    for name in ("sampled", "most_bytes", "allow"):
        if getattr(index, name):
            raise InvalidArgument(f"--index {name}= is for commands that open data: leave it out")
    return None if index.folder is None else os.fspath(index.folder)


def _arguments_in(value: Any) -> str:
    """Return the fields of a frozen value that are not as by default, as arguments of a call."""
    given = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
    default = type(value)()
    return ", ".join(f"{name}={one!r}" for name, one in given.items() if one != getattr(default, name))


FORMS = "ray, ray://HOST:PORT, ray:HOST:PORT, dask://HOST:PORT, slurm:N or module:function"

_PORT = r"[^/\s:@]+:\d+"
_NAMED = re.compile(
    rf"(?P<ray>ray(://{_PORT}|:{_PORT})?)|dask://(?P<dask>{_PORT})|slurm:(?P<slurm>[1-9]\d*)"
    rf"|(?P<function>(?!(ray|dask|slurm):)[A-Za-z_][\w.]*:[A-Za-z_][\w.]*)"
)


@contextmanager
def executor_of(name: str | None, *, jobs: int | None) -> Iterator[Executor | None]:
    """Yield the executor that an option names, None for none; it is shut down at the end.

    After an error or an interrupt no task is waited for: those that wait in the cluster are cancelled.

    Args:
        name: the value of ``--executor``.
        jobs: the value of ``--jobs``, which must be None beside it.

    Raises:
        InvalidArgument: the name has another form, or there are both options.
        MissingDependency: the package of the cluster is not installed.
        WrongType: a function returned something that is not an executor.
        OSError: the cluster cannot be reached.
    """
    if name is None:
        yield None
        return
    if jobs is not None:
        message = f"--jobs is for processes of this machine: leave it out beside --executor {name}"
        raise InvalidArgument(message)
    executor = _made(name)
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        raise
    executor.shutdown()


def _made(name: str) -> Executor:
    named = _NAMED.fullmatch(name)
    if named is None:
        raise InvalidArgument(f"--executor takes {FORMS} (got {name!r})")
    made: Executor
    if named["ray"]:
        made = _ray(name)
    elif named["dask"]:
        made = _integration("dask").DaskExecutor(named["dask"])
    elif named["slurm"]:
        made = _integration("slurm").SlurmExecutor(int(named["slurm"]))
    else:
        made = _of_function(name)
    return made


def _ray(name: str) -> Executor:
    # What programs print on the nodes would come to stdout, between the data.
    os.environ.setdefault("RAY_LOG_TO_DRIVER", "0")
    address = name if "://" in name else name.partition(":")[2] or None
    executor: Executor = _integration("ray").RayExecutor(address)
    return executor


def _of_function(name: str) -> Executor:
    from seekable.viewer.facts.pipelines import made_by

    made: Executor = made_by(name, "an executor")
    if not callable(getattr(made, "submit", None)) or not callable(getattr(made, "shutdown", None)):
        raise WrongType(f"{name} must return a concurrent.futures.Executor (got {type(made).__name__})")
    return made


def _integration(name: str) -> Any:
    """Import one integration, because each needs a package of its own."""
    return imported_module(f"seekable.integrations.{name}")
