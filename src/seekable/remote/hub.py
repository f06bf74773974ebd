"""Files of the Hugging Face Hub, fetched with the sessions, the token and the endpoint of its own package."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from seekable.errors import (
    AccessDenied,
    DataNotFound,
    IndexStale,
    MissingDependency,
    SeekableError,
    Unreachable,
)
from seekable.remote.block_cache import block_cache, block_cache_bytes
from seekable.remote.remote_ranges import RemoteRanges
from seekable.storage.mapped import MappedFile
from seekable.storage.ranges import MappedRanges

if TYPE_CHECKING:
    from types import ModuleType

    from seekable.remote.placeholder import HubFile
    from seekable.storage.ranges import RangeSource

__all__ = ["fetch", "hub", "hub_error", "hub_ranges"]

_ATTEMPTS = 3
"""The most requests for one range whose answers are cut off."""

_RETRIES = 4
_FIRST_WAIT_SECONDS = float(os.environ.get("SEEKABLE_HUB_FIRST_WAIT_SECONDS", "0.5"))
"""The wait before the first retry, which doubles with each; tests set the variable."""

_PASSING = (408, 429, 500, 502, 503, 504)
_DENIED = (401, 403)
_NOT_FOUND = (404, 410)
_PARTIAL = 206


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


def hub_ranges(file: HubFile) -> RangeSource:
    """Return the byte ranges of a file; of its copy on this machine, if ``huggingface_hub`` has one."""
    copy = _local_copy(file)
    if copy is not None:
        status = os.stat(copy)
        mapped = MappedFile(copy, size=status.st_size, mtime_ns=status.st_mtime_ns)
        return MappedRanges(mapped, path=file.uri)
    return RemoteRanges(
        partial(fetch, file),
        path=file.uri,
        size=file.size,
        version=file.etag,
        blocks=block_cache(os.path.join(file.hub, "blocks"), block_cache_bytes()),
    )


def fetch(file: HubFile, start: int, stop: int) -> bytes:
    """Return some bytes of a file; requests that fail for a passing reason are sent again.

    Args:
        file: the file.
        start: the first byte.
        stop: the byte behind the last, more than ``start``.

    Raises:
        AccessDenied: the repository is private or gated, and the token does not open it.
        DataNotFound: the repository has no such file.
        IndexStale: the content is not the content that was listed.
        Unreachable: the Hub cannot be reached, or answers with other bytes than the request is for.
    """
    what = f"bytes {start} to {stop} of {file.uri}"
    why = ""
    for _ in range(_ATTEMPTS):
        response = _answer(file, start, stop, what)
        _check_content(file, response)
        why = _wrong(file, response, start, stop)
        if not why:
            return bytes(response.content)
    message = f"{what} could not be fetched: {why}, {_ATTEMPTS} times in a row. Try again later"
    raise Unreachable(message)


def _local_copy(file: HubFile) -> str | None:
    """Return the path of a file in the cache of ``huggingface_hub``, None if it was not downloaded."""
    try:
        found = hub().try_to_load_from_cache(
            file.repo, file.path, revision=file.revision, repo_type="dataset"
        )
    except (MissingDependency, OSError, ValueError):
        return None
    if not isinstance(found, str):
        return None
    path = os.path.realpath(found)
    # The cache keeps a file under its digest, and links to it; where links are impossible, it has a copy.
    if os.path.islink(found) and os.path.basename(path) != file.etag:
        return None
    return path if os.path.getsize(path) == file.size else None


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
        f"{os.environ.get('HF_ENDPOINT', 'https://huggingface.co')} up? Blocks that were read before are on "
        f"this machine"
    )


def _answer(file: HubFile, start: int, stop: int, what: str) -> Any:
    """Return the response to a request for a range."""
    package = hub()
    utils, constants = package.utils, package.constants
    url = package.hf_hub_url(file.repo, file.path, repo_type="dataset", revision=file.revision)
    headers = {"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"}
    try:
        response = utils.http_backoff(
            "GET",
            url,
            headers={**utils.build_hf_headers(library_name="seekable"), **headers},
            timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT,
            max_retries=_RETRIES,
            base_wait_time=_FIRST_WAIT_SECONDS,
            retry_on_status_codes=_PASSING,
        )
        utils.hf_raise_for_status(response)
    except Exception as error:  # of several packages for HTTP, by the version of huggingface_hub
        raise hub_error(error, what) from error
    return response


def _check_content(file: HubFile, response: Any) -> None:
    """Raise an error if the answer has an etag, and it is not the etag that was listed."""
    answers = [*response.history, response]
    etags = [answer.headers.get("X-Linked-ETag") for answer in answers]
    # After a redirect the ETag is that of the storage, which is another one.
    etags += [response.headers.get("ETag")] if not response.history else []
    found = next((etag for etag in etags if etag), None)
    etag = (found or "").removeprefix("W/").strip('"')
    if etag and etag != file.etag:
        message = (
            f"{file.uri} has another content than when the repository was listed: etag {etag!r}, expected "
            f"{file.etag!r}. Is HF_ENDPOINT another Hub? Remove {file.placeholder!r} and open the data again"
        )
        raise IndexStale(message)


def _wrong(file: HubFile, response: Any, start: int, stop: int) -> str:
    """Return a message if the answer is not the range of the request, "" if it is."""
    count, found = len(response.content), response.headers.get("Content-Range", "")
    whole = start == 0 and stop == file.size
    if response.status_code != _PARTIAL and not whole:
        return f"the answer is {response.status_code} with {count} bytes, and not a part of the file"
    if response.status_code == _PARTIAL and found != f"bytes {start}-{stop - 1}/{file.size}":
        return f"the answer has the range {found!r} of a file of {file.size} bytes"
    return "" if count == stop - start else f"{count} of {stop - start} bytes came"
