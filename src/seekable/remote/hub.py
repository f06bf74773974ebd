"""Bytes of files of the Hub, fetched through ``huggingface_hub``: its sessions, its token, its endpoint."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from seekable.errors import (
    AccessDenied,
    DataNotFound,
    IndexStale,
    MissingDependency,
    SeekableError,
    Unreachable,
)

if TYPE_CHECKING:
    from types import ModuleType

    from seekable.remote.placeholder import RemoteFile

__all__ = ["fetch", "hub", "local_copy", "refused"]

_ATTEMPTS = 3
"""How often a range is asked for whose answer was cut off."""

_RETRIES = 4
_FIRST_WAIT_SECONDS = float(os.environ.get("SEEKABLE_HUB_FIRST_WAIT_SECONDS", "0.5"))
"""The wait before the first retry, which doubles with each; tests set the variable."""

_PASSING = (408, 429, 500, 502, 503, 504)
_DENIED = (401, 403)
_NOT_FOUND = (404, 410)
_PARTIAL = 206


def hub() -> ModuleType:
    """Return ``huggingface_hub``.

    Raises:
        MissingDependency: it is not installed.
    """
    try:
        import huggingface_hub.utils  # Loads the package and its constants too.
    except ImportError:
        message = "reading from the Hugging Face Hub needs huggingface_hub: pip install 'seekable[hub]'"
        raise MissingDependency(message) from None
    return huggingface_hub


def fetch(file: RemoteFile, start: int, stop: int) -> bytes:
    """Return some bytes of a file; what fails in passing is tried again.

    Args:
        file: the file.
        start: the first byte.
        stop: the one behind the last, more than ``start``.

    Raises:
        AccessDenied: the repository is private or gated, and the token does not open it.
        DataNotFound: it has no such file.
        IndexStale: the file has another content than the one that was listed.
        Unreachable: the Hub cannot be reached, or does not answer as it should.
    """
    what = f"bytes {start} to {stop} of {file.told}"
    why = ""
    for _ in range(_ATTEMPTS):
        response = _answer(file, start, stop, what)
        _check_content(file, response)
        why = _wrong(file, response, start, stop)
        if not why:
            return bytes(response.content)
    message = f"{what} could not be fetched: {why}, {_ATTEMPTS} times in a row. Try again later"
    raise Unreachable(message)


def local_copy(file: RemoteFile) -> str | None:
    """Return the path of a file in the cache of ``huggingface_hub``, if somebody downloaded it as a whole."""
    try:
        found = hub().try_to_load_from_cache(
            file.repo, file.path, revision=file.revision, repo_type="dataset"
        )
    except (MissingDependency, OSError, ValueError):
        return None
    if not isinstance(found, str):
        return None
    path = os.path.realpath(found)
    # There a file is kept under its digest, and linked to; copied where links cannot be made.
    if os.path.islink(found) and os.path.basename(path) != file.etag:
        return None
    return path if os.path.getsize(path) == file.size else None


def refused(error: Exception, what: str) -> SeekableError:
    """Return an error of ``huggingface_hub`` as one that says what to do.

    Args:
        error: what it raised.
        what: what was asked for.
    """
    status = getattr(getattr(error, "response", None), "status_code", None)
    kinds = {kind.__name__ for kind in type(error).__mro__}
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if status in _DENIED or kinds & {"GatedRepoError", "DisabledRepoError"}:
        gated = " and ask for access on the page of the repository" if "GatedRepoError" in kinds else ""
        return AccessDenied(
            f"{what} may not be read, or is not there: the Hub answers {status}. Log in with `hf auth login` "
            f"or set HF_TOKEN to a token that may read it{gated}"
        )
    if status in _NOT_FOUND or kinds & {"RepositoryNotFoundError", "EntryNotFoundError"}:
        return DataNotFound(
            f"{what} is not there: the Hub answers {status or first}. Look at the name; a private repository "
            f"needs `hf auth login` or HF_TOKEN"
        )
    if "OfflineModeIsEnabled" in kinds:
        return Unreachable(
            f"{what} is not on this machine, and HF_HUB_OFFLINE is set. Unset it, or download the repository "
            f"where there is a network: hf download --repo-type dataset REPO"
        )
    return Unreachable(
        f"{what} could not be fetched: {type(error).__name__}: {first}. Is there a network, and is "
        f"{os.environ.get('HF_ENDPOINT', 'https://huggingface.co')} up? What was read before is read from "
        f"this machine"
    )


def _answer(file: RemoteFile, start: int, stop: int, what: str) -> Any:
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
    except Exception as error:  # of other classes in each version of the package
        raise refused(error, what) from error
    return response


def _check_content(file: RemoteFile, response: Any) -> None:
    """Refuse another content than that which was listed, where the answer tells which it is."""
    answers = [*response.history, response]
    etags = [answer.headers.get("X-Linked-ETag") for answer in answers]
    # The address that one is sent on to has an ETag of its own, which says nothing here.
    etags += [response.headers.get("ETag")] if not response.history else []
    told = next((etag for etag in etags if etag), None)
    etag = (told or "").removeprefix("W/").strip('"')
    if etag and etag != file.etag:
        message = (
            f"{file.told} has another content than when the repository was listed: etag {etag!r}, expected "
            f"{file.etag!r}. Is HF_ENDPOINT another Hub? Remove {file.placeholder!r} and open the data again"
        )
        raise IndexStale(message)


def _wrong(file: RemoteFile, response: Any, start: int, stop: int) -> str:
    """Return what is wrong with the bytes that came, nothing if they are those that were asked for."""
    count, told = len(response.content), response.headers.get("Content-Range", "")
    whole = start == 0 and stop == file.size
    if response.status_code != _PARTIAL and not whole:
        return f"the answer is {response.status_code} with {count} bytes, and not a part of the file"
    if response.status_code == _PARTIAL and told != f"bytes {start}-{stop - 1}/{file.size}":
        return f"the answer has the range {told!r} of a file of {file.size} bytes"
    return "" if count == stop - start else f"{count} of {stop - start} bytes came"
