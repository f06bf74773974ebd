"""Datasets on the Hub as a store, read by ``huggingface_hub``, and the errors of that package."""

from __future__ import annotations

import os
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, final

from seekable.errors import (
    AccessDenied,
    DataNotFound,
    IndexStale,
    InvalidArgument,
    MissingDependency,
    SeekableError,
    Unreachable,
)
from seekable.remote.stores.object_store import Passing, Stat, Store, identity_of, in_thread, plain_etag

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from types import ModuleType

    from typing_extensions import Buffer

    from seekable.remote.stores.object_store import FolderListing, Page, Pin
    from seekable.storage.addresses import Address

__all__ = ["HubStore", "hub", "hub_error", "is_on_hub"]

_DENIED = (401, 403)
_NOT_FOUND = (404, 410)

_KEY: Final = re.compile(
    r"(?P<repo>[^/@]+(?:/[^/@]+)?)@(?P<commit>[0-9a-f]{40})(?:/(?P<path>.*))?", re.DOTALL
)
_RANGE: Final = re.compile(r"bytes (?P<start>\d+)-(?P<last>\d+)/(?P<size>\d+)")
_PAGE: Final = 1000
_OK, _PARTIAL, _NO_RANGE = 200, 206, 416
_BUSY: Final = (429, 503)
_PASSING: Final = (408, 425, 429, 500, 502, 503, 504)
_NO_ANSWER: Final = frozenset({"TransportError", "RequestException", "TimeoutError", "ConnectionError"})
"""Classes of errors of packages for HTTP where no answer came, or not all of it."""


def hub() -> ModuleType:
    """Return the module ``huggingface_hub``, with its ``errors``, ``utils`` and ``constants`` loaded.

    Raises:
        MissingDependency: it is not installed.
    """
    try:
        import huggingface_hub.errors
        import huggingface_hub.utils  # Loads the package and its constants too.
    except ImportError:
        message = "reading from the Hugging Face Hub needs huggingface_hub: pip install 'seekable[hub]'"
        raise MissingDependency(message) from None
    return huggingface_hub


def hub_error(error: Exception, what: str) -> SeekableError:
    """Return the error of this library for an error of ``huggingface_hub``; its message says what to do.

    Args:
        error: the error.
        what: the subject of the request, the first words of the message.
    """
    errors = hub().errors
    status = getattr(getattr(error, "response", None), "status_code", None)
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    is_gated = isinstance(error, errors.GatedRepoError)
    if status in _DENIED or is_gated or isinstance(error, errors.DisabledRepoError):
        gated = " and ask for access on the page of the repository" if is_gated else ""
        return AccessDenied(
            f"{what} may not be read, or is not there: the Hub answers {status}. Log in with `hf auth login` "
            f"or set HF_TOKEN to a token that may read it{gated}"
        )
    missing = errors.RepositoryNotFoundError, errors.EntryNotFoundError
    if status in _NOT_FOUND or isinstance(error, missing):
        return DataNotFound(
            f"{what} is not there: the Hub answers {status or first}. Look at the name; a private repository "
            f"needs `hf auth login` or HF_TOKEN"
        )
    if isinstance(error, errors.OfflineModeIsEnabled):
        return Unreachable(
            f"{what} is not on this machine, and HF_HUB_OFFLINE is set. Unset it, or download the repository "
            f"where there is a network: hf download --repo-type dataset REPO"
        )
    return Unreachable(
        f"{what} could not be fetched: {type(error).__name__}: {first}. Is there a network, and is "
        f"{os.environ.get('HF_ENDPOINT', 'https://huggingface.co')} up? Bytes that were read before are on "
        f"this machine"
    )


class _HubEntry(NamedTuple):
    repo: str
    commit: str
    path: str


def is_on_hub(address: Address) -> bool:
    """Return True if an address names a file, or all files, of a dataset on the Hub at a commit.

    Example:
        >>> from seekable.storage.addresses import parse
        >>> [is_on_hub(parse(f"hf://datasets/me/web@{at}/a.jsonl")) for at in ("01" * 20, "main")]
        [True, False]
    """
    return (
        address.scheme == "hf" and address.authority == "datasets" and _KEY.fullmatch(address.key) is not None
    )


@final
class HubStore(Store):
    """The files of all datasets on the Hub. Their keys are ``REPO@COMMIT/PATH``; they are never written.

    Calls of ``huggingface_hub`` are synchronous and run in threads.
    """

    fork_safe = True

    def shown(self, key: str) -> str:
        """Return the address of a file for messages."""
        return f"hf://datasets/{key}"

    async def stat(self, key: str) -> Stat:
        """Return the size and the etag of a file."""
        found = await self._call(self.shown(key), partial(_metadata, _file(key)))
        return Stat(key, int(found.size or 0), found.etag, None, 0)

    async def read(self, key: str, start: int, stop: int, *, pin: Pin) -> Buffer:
        """Return exactly the bytes of a range, after the etag of the answer was compared with ``pin``."""
        if start >= stop:
            return b""
        what = f"bytes {start} to {stop} of {self.shown(key)}"
        response = await self._call(what, partial(_range, _file(key), start, stop))
        etag = _etag(response)
        if etag and identity_of(etag, modified_ns=0, size=pin.size) != pin.identity:
            raise self._changed(key, etag, pin)
        whole = start == 0 and stop == pin.size and response.status_code == _OK
        found = response.headers.get("Content-Range", "")
        sent = _RANGE.fullmatch(found)
        if response.status_code == _NO_RANGE or (sent is not None and int(sent["size"]) != pin.size):
            raise self._changed(key, f"{etag}, and {found or 'fewer bytes'}", pin)
        if not whole and (sent is None or (int(sent["start"]), int(sent["last"])) != (start, stop - 1)):
            message = f"the answer to {what} is {response.status_code} with the range {found!r}"
            raise Passing(message)
        data: bytes = response.content
        if len(data) != stop - start:
            message = f"{len(data)} of {stop - start} bytes came"
            raise Passing(message)
        pin.etag = pin.etag or etag or None
        return data

    async def list(self, prefix: str, *, after: str = "", before: str = "") -> AsyncIterator[Page]:
        """Yield the files below a folder of a commit in pages, sorted by key."""
        found = await self._tree(prefix)
        kept = [stat for stat in found if stat.key > after and (not before or stat.key < before)]
        for at in range(0, len(kept), _PAGE):
            yield kept[at : at + _PAGE]

    async def list_folder(self, prefix: str) -> FolderListing:
        """Return the folders and the files directly below a folder of a commit."""
        folder = f"{prefix.strip('/')}/"
        folders: dict[str, None] = {}
        stats = []
        for stat in await self._tree(prefix):
            name, slash, _ = stat.key.removeprefix(folder).partition("/")
            if slash:
                folders[folder + name] = None
            else:
                stats.append(stat)
        return list(folders), stats

    async def put(self, key: str, data: Buffer, *, replacing: Stat | Literal["any"] | None) -> Stat:
        """Raise an error: a commit is never changed.

        Raises:
            InvalidArgument: always.
        """
        raise self._unchangeable(key)

    async def delete(self, key: str) -> None:
        """Raise an error: a commit is never changed.

        Raises:
            InvalidArgument: always.
        """
        raise self._unchangeable(key)

    async def _tree(self, prefix: str) -> Page:
        """Return the files below a folder of a commit, sorted by key; none if there is no such folder."""
        folder = f"{prefix.strip('/')}/"
        try:
            found = await self._call(self.shown(prefix), partial(_files, _file(prefix)))
        except DataNotFound:
            return []
        return sorted((stat for stat in found if stat.key.startswith(folder)), key=lambda stat: stat.key)

    async def _call(self, what: str, call: Callable[[], Any]) -> Any:
        """Run a call of ``huggingface_hub`` in a thread; its errors become those of this library."""
        try:
            return await in_thread(call)
        except (SeekableError, Passing):
            raise
        except Exception as error:  # noqa: BLE001 - of several packages for HTTP, by the version of huggingface_hub
            raise _error(error, what) from None

    def _changed(self, key: str, found: str, pin: Pin) -> IndexStale:
        expected = repr(pin.etag) if pin.etag else f"one of the digest {pin.identity:x}"
        message = (
            f"{self.shown(key)} has another content than when the repository was listed: etag {found!r}, "
            f"expected {expected} and {pin.size} bytes. Is HF_ENDPOINT another Hub? Else remove the "
            f"repository from the folder `hub` of the indexes, and open the data again"
        )
        return IndexStale(message)

    def _unchangeable(self, key: str) -> InvalidArgument:
        message = f"{self.shown(key)} is a file of a commit, which is never changed: name a branch to write"
        return InvalidArgument(message)


def _file(key: str) -> _HubEntry:
    found = _KEY.fullmatch(key.rstrip("/"))
    if found is None:
        message = f"hf://datasets/{key} names no commit: expected hf://datasets/REPO@COMMIT/PATH"
        raise InvalidArgument(message)
    return _HubEntry(found["repo"], found["commit"], found["path"] or "")


def _url(file: _HubEntry) -> str:
    url: str = hub().hf_hub_url(file.repo, file.path, repo_type="dataset", revision=file.commit)
    return url


def _metadata(file: _HubEntry) -> Any:
    package = hub()
    return package.get_hf_file_metadata(_url(file), timeout=package.constants.HF_HUB_ETAG_TIMEOUT)


def _range(file: _HubEntry, start: int, stop: int) -> Any:
    """Return the answer to one request for a range; errors are those of ``huggingface_hub``."""
    package = hub()
    utils, constants = package.utils, package.constants
    headers = {"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"}
    response = utils.http_backoff(
        "GET",
        _url(file),
        headers={**utils.build_hf_headers(library_name="seekable"), **headers},
        timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT,
        max_retries=0,
        retry_on_exceptions=(),
        retry_on_status_codes=(),
    )
    if response.status_code != _NO_RANGE:
        utils.hf_raise_for_status(response)
    return response


def _files(file: _HubEntry) -> list[Stat]:
    api = hub().HfApi(library_name="seekable")
    tree: Iterable[Any] = api.list_repo_tree(
        file.repo, file.path or None, recursive=True, revision=file.commit, repo_type="dataset"
    )
    root = f"{file.repo}@{file.commit}"
    return [
        Stat(f"{root}/{each.path}", each.size, each.lfs.sha256 if each.lfs else each.blob_id, None, 0)
        for each in tree
        if hasattr(each, "blob_id")
    ]


def _etag(response: Any) -> str:
    """Return the etag of the content. After a redirect, ``ETag`` is that of the storage, which differs."""
    linked = [answer.headers.get("X-Linked-ETag") for answer in (*response.history, response)]
    own = [] if response.history else [response.headers.get("ETag")]
    return plain_etag(next((etag for etag in (*linked, *own) if etag), ""))


def _error(error: Exception, what: str) -> Exception:
    """Return the error for one of ``huggingface_hub`` or of its package for HTTP."""
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None)
    if status in _PASSING:
        after = response.headers.get("Retry-After", "") if response is not None else ""
        seconds = float(after) if after.isdecimal() else None
        return Passing(f"the Hub answers {status}", retry_after=seconds, refused=status in _BUSY)
    names = {kind.__name__ for kind in type(error).__mro__}
    if status is None and names & _NO_ANSWER and not isinstance(error, hub().errors.OfflineModeIsEnabled):
        # The text may have the URL of the storage, whose query is a signature.
        text = re.sub(r"\?\S+", "?...", str(error).strip().partition("\n")[0])
        return Passing(f"{type(error).__name__}: {text}")
    return hub_error(error, what)
