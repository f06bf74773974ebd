"""``sk.view``: a viewer of objects of this process, for notebooks and scripts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from seekable._arguments import checked_count, checked_path, checked_texts
from seekable._lazy import lazy
from seekable._optional import is_installed
from seekable.errors import CorruptRecord, ForkUnsafe, InvalidArgument, MissingDependency
from seekable.nodes.node import node_of
from seekable.viewer.facts.loss_log import read_loss_log
from seekable.viewer.media import media_roots
from seekable.viewer.opened import opened_of, safe_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seekable.dataset.dataset import Dataset
    from seekable.viewer import notebook_table, server
    from seekable.viewer.opened import Opened
else:
    notebook_table = lazy("seekable.viewer.notebook_table")
    server = lazy("seekable.viewer.server")

_MOST_RECORDS = 100
_NEEDED = ("starlette", "uvicorn", "jinja2")
_HUB_ADDRESSES = ("JUPYTERHUB_PUBLIC_URL", "JUPYTERHUB_PUBLIC_HUB_URL", "JUPYTERHUB_HOST")


def view(  # noqa: PLR0913 - each is an option of the command
    targets: Any,
    *,
    height: int = 600,
    log: str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]] | None = None,
    media_root: str | os.PathLike[str] | None = None,
    text_key: str | None = None,
    tokenizer: str | os.PathLike[str] | None = None,
    allow_host: Sequence[str] = (),
    frame_from: Sequence[str] = (),
) -> Viewer:
    """Return a viewer of datasets, streams, loaders and folders of states, which a notebook shows.

    Of one object that is its page; of a mapping it is the list of all. `Viewer.table` stays in the notebook.

    The pages are served by a thread of this process, one for all viewers, on 127.0.0.1 alone. They are
    read-only. A forked child does not have the server, and has to call this function itself.

    Args:
        targets: one of these objects, or a mapping from names to them.
        height: the height of the frame in a notebook, in pixels.
        log: the losses of a trainer, JSON lines or CSV with ``step`` and ``loss``; of several loaders, a
            mapping from their names to logs.
        media_root: the folder below which the pages may read files that records name.
        text_key: the field that counts as text; the longest one if left out.
        tokenizer: the file of the tokenizer that makes texts of token ids and counts tokens: a
            ``tokenizer.json``, or a folder with one.
        allow_host: names of a hub, if the notebook is reached by a name that this process cannot find out.
        frame_from: origins whose pages may show the viewer in a frame, besides those of this machine.

    Raises:
        MissingDependency: the extra ``view`` is not installed.
        WrongType: a target is none of these objects.
        DataNotFound: the log or the folder is not there.
        InvalidArgument: several loaders are viewed, and the log does not say which one it belongs to.

    Example:
        >>> import seekable as sk
        >>> ds = sk.from_sequence(["a", "b", "c"])
        >>> viewer = sk.view({"letters": ds, "train": sk.Loader(ds.shuffle(seed=1), batch_size=2)})
        >>> viewer.url.startswith("http://127.0.0.1:")
        True
        >>> viewer.close()
    """
    check_installed("sk.view")
    named = targets if isinstance(targets, Mapping) else {"data": targets}
    checked_texts("the names of what is viewed", [*named, *_named_logs(log)])
    opened = opened_of(
        named,
        logs={
            safe_name(name) if name else "": read_loss_log(path) for name, path in _named_logs(log).items()
        },
        media=media_roots([] if media_root is None else [media_root]),
        text_key=text_key,
        tokenizer=None if tokenizer is None else checked_path(tokenizer),
    )
    height = checked_count("height", height, least=1)
    hosts, frames = checked_texts("allow_host", allow_host), checked_texts("frame_from", frame_from)
    shared = server.share(opened, hosts=[*hosts, *_hub_hosts()], frames=frames)
    only = None if isinstance(targets, Mapping) else "data"
    page = "" if only is None else f"{'d' if only in opened.datasets else 'p'}/{only}/"
    return Viewer(shared, opened, list(named), height=height, page=page)


def _named_logs(
    log: str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]] | None,
) -> Mapping[str, str | os.PathLike[str]]:
    if log is None:
        return {}
    return log if isinstance(log, Mapping) else {"": log}


class Viewer:
    """Pages that this process serves, made by `seekable.view`; closed by ``close`` or the end of a ``with``.

    Example:
        >>> import seekable as sk
        >>> with sk.view(sk.from_sequence("abc")) as viewer:
        ...     "<iframe" in viewer._repr_html_()
        True
        >>> viewer
        <Viewer of data, closed>
    """

    def __init__(
        self, shown: server.Shown, opened: Opened, names: list[str], *, height: int, page: str
    ) -> None:
        self._shown = shown
        self._opened = opened
        self._names = names
        self._height = height
        self._page = page

    @property
    def url(self) -> str:
        """The link to the first page; it holds a secret. Under JupyterHub it is a path below the hub.

        Raises:
            ForkUnsafe: this process is a fork of the one that serves.
        """
        if not self._shown.is_ours:
            message = "the pages are served by the process that this one was forked from: call view() here"
            raise ForkUnsafe(message)
        port, token = self._shown.port, self._shown.token
        prefix = os.environ.get("JUPYTERHUB_SERVICE_PREFIX")
        if prefix:
            return f"{prefix.rstrip('/')}/proxy/{port}/{token}/"
        return f"http://127.0.0.1:{port}/{token}/"

    def table(self, name: str | None = None, *, n: int = 5, at: int = 0) -> notebook_table.NotebookTable:
        """Return records as a table that stays in the notebook, with its pictures and sounds up to 512 KiB.

        It needs no server once it is made, so it is seen where the frame is not: in a saved notebook, on a
        machine that cannot reach this one. Records of a pipeline are made by its functions.

        Args:
            name: which data or pipeline of a dataset; may be left out if it is the only one that was given.
            n: how many records, 1 to 100; fewer where the data ends.
            at: the first of them, or its position in a pipeline.

        Raises:
            InvalidArgument: several are viewed, and ``name`` does not say which.
            KeyNotFound: none has this name, or it is a stream.

        Example:
            >>> import seekable as sk
            >>> with sk.view(sk.from_sequence([{"text": "a"}, {"text": "b"}])) as viewer:
            ...     viewer.table(n=1)
            <1 column of 1 record of data>
        """
        if name is None and len(self._names) > 1:
            message = f"name= says of which there is a table: {', '.join(self._names)}"
            raise InvalidArgument(message)
        count = checked_count("n", n, least=1, below=_MOST_RECORDS + 1)
        first = checked_count("at", at, least=0)
        key = safe_name(self._names[0] if name is None else name)
        opened = self._opened
        dataset = opened.datasets[key] if key in opened.datasets else opened.pipeline(key).loader.dataset
        size = node_of(dataset).size
        stop = first + count if size is None or key in opened.pipelines else min(first + count, size)
        return notebook_table.notebook_table(
            key, [(row, _record(dataset, row)) for row in range(first, stop)]
        )

    def close(self) -> None:
        """Stop serving these pages and end their jobs; the server ends with the last viewer."""
        self._shown.close()

    def __enter__(self) -> Self:
        """Return this viewer, for a ``with`` statement."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop serving the pages of this viewer."""
        self.close()

    def __repr__(self) -> str:
        """Return what is shown, and where."""
        return f"<Viewer of {', '.join(self._names)}, {self._where()}>"

    def _repr_html_(self) -> str:
        """Return a frame with the first page, and its link; without a server, what ``repr`` returns."""
        if not self._shown.is_open or not self._shown.is_ours:
            return f"<code>{escape(repr(self))}</code>"
        url = escape(self.url + self._page)
        return (
            f'<iframe src="{url}" title="seekable: {escape(", ".join(self._names))}" width="100%" '
            f'height="{self._height}" style="border:0"></iframe>'
            f'<p><a href="{url}" target="_blank" rel="noopener">Open in a tab</a></p>'
        )

    def _where(self) -> str:
        if not self._shown.is_ours:
            return "in another process"
        return self.url if self._shown.is_open else "closed"


def _record(dataset: Dataset, position: int) -> Any:
    """Return a record, or the error that it is corrupt."""
    try:
        return node_of(dataset).record(position)
    except CorruptRecord as error:
        return error


def check_installed(what: str) -> None:
    """Refuse to serve pages without the packages that do.

    Raises:
        MissingDependency: one of them is not installed.
    """
    missing = [name for name in _NEEDED if not is_installed(name)]
    if missing:
        message = f"{what} needs {', '.join(missing)}: pip install 'seekable[view]'"
        raise MissingDependency(message)


def _hub_hosts() -> list[str]:
    """Return the names under which a hub says that it is reached."""
    addresses = [os.environ.get(name, "") for name in _HUB_ADDRESSES]
    return [host for address in addresses if (host := urlsplit(address).hostname)]
