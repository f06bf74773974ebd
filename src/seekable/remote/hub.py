"""The package ``huggingface_hub``, which sends all requests to the Hub, and its errors."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from seekable.errors import (
    AccessDenied,
    DataNotFound,
    MissingDependency,
    SeekableError,
    Unreachable,
)

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["hub", "hub_error"]

_DENIED = (401, 403)
_NOT_FOUND = (404, 410)


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
