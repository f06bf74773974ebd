"""Errors of obstore as errors of this library: which may pass, which say what to do; none shows a secret."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seekable.errors import AccessDenied, DataNotFound, InvalidArgument, Unreachable
from seekable.remote.stores.object_store import Passing
from seekable.remote.stores.storage_options import options_in_words

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["AUTHORIZATION", "Failure", "NoLength", "failure_of", "redacted"]

_STATUS = re.compile(r"status(?: code)?: ([0-9]{3})")
_CODE = re.compile(r"<Code>([^<]{1,80})</Code>")
_REASON = re.compile(r"<Message>([^<]{1,300})</Message>")
_URL = re.compile(r"(?P<base>[a-z][a-z0-9+.-]*://)(?:[^/\s?@]*@)?(?P<rest>[^\s?]*)(?:\?\S*)?", re.IGNORECASE)
_KIND = re.compile(r"kind: (Timeout|Connect|Interrupted|Request|Decode|Unknown)")
_KINDS = {
    "Timeout": "no answer in time",
    "Connect": "no connection",
    "Interrupted": "the answer broke off",
}
_PASSING = frozenset({408, 425, 429})
_REFUSING = frozenset({429, 503})
_SERVER_FAULTS = 500
_NOT_IMPLEMENTED = 501
_BAD_REQUEST = 400
_DENIED = frozenset({401, 403})
_NOT_FOUND = frozenset({404, 410})
_CONFLICT = 409
_UNFIT = frozenset({304, 412, 416})
_UNDER_WAY = re.compile("ConditionalRequestConflict|OperationAborted")
"""The codes of S3 while another request writes the same object."""
_UNFIT_RANGE = re.compile(r"invalid range|range was invalid", re.IGNORECASE)
_EXPIRED = re.compile(r"expired|TokenRefreshRequired|InvalidToken", re.IGNORECASE)
_NO_CREDENTIALS = re.compile(
    r"169\.254\.|/latest/(?:api/token|meta-data)|metadata\.google|computeMetadata|token request|credential",
    re.IGNORECASE,
)
"""Words of errors of the search for credentials alone, such as the address of a metadata service."""

_OTHER_REGION = re.compile(
    r"AuthorizationHeaderMalformed|PermanentRedirect|IllegalLocationConstraint|redirect without LOCATION"
)
_REGION = re.compile(r"<Region>([a-z0-9-]{1,40})</Region>|expecting '([a-z0-9-]{1,40})'")
_CLOCK = re.compile("RequestTimeTooSkewed|RequestInTheFuture|RequestExpired")
_NO_TLS = re.compile(r"InvalidMessage\(\s*InvalidContentType")
_BAD_CERTIFICATE = re.compile(r"InvalidCertificate\(\s*(\w+)")
"""Words of the TLS library, which stand below the first line of errors of obstore."""

_ODD_KEY = re.compile(r'object with invalid path: .*?Path "([^"]*)"')
"""What is said of a listing with a key that has an empty part, or one of dots: nothing of its page comes."""

_CUT = re.compile(r"header|invalid list response", re.IGNORECASE)
"""What is said of an answer without a header that it must have, and of the XML of a page that was cut off."""
_NO_LENGTH = re.compile(r"content.length header missing|content.range header", re.IGNORECASE)
"""What is said of answers without the headers that say how long a file is, or with ``bytes 0-9/*``."""
_REDIRECTS = "error following redirect"
_PLAIN_HTTP_REFUSED = "HTTP error: builder error"

_LIMIT = 400

_ANONYMOUS = options_in_words("{'anonymous': True}")
AUTHORIZATION = options_in_words("{'headers': {'Authorization': ...}}")
"""How to give a header that says who asks."""
_CERTIFICATE = options_in_words("{'root_certificate': ...}")

_WAYS = {
    "s3": "set AWS_PROFILE (needs boto3), or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or for public data "
    f"{_ANONYMOUS}",
    "gs": "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS, or for public "
    f"data {_ANONYMOUS}",
    "az": "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or give them as the options "
    f"'account_name' and 'account_key' or 'sas_key', or for public data {_ANONYMOUS}",
    "http": f"put user:password@ before the host, or give {AUTHORIZATION}; a signed URL may have expired",
}
"""The ways to other credentials, by scheme."""


class NoLength(Passing):
    """The answer of a web server does not say how long the file is; some servers never do."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure of one request to a store.

    Attributes:
        error: the error to raise.
        changed: True if the object has other content than the request names (412), or other bytes (416).
        expired: True if other credentials may help: these expired, or may have.
    """

    error: Exception
    changed: bool = False
    expired: bool = False


def failure_of(
    error: Exception, *, address: str, scheme: str, action: str, credentials: str, secrets: Iterable[str]
) -> Failure:
    """Return the failure that an error of obstore stands for.

    Args:
        error: the error.
        address: the address of the object, without secrets.
        scheme: the scheme of the store.
        action: the rest of "cannot be": ``read``, with the bytes in brackets or not, ``listed``,
            ``written`` or ``deleted``.
        credentials: a text for the kind of the credentials that were used.
        secrets: texts that the message may not have.
    """
    text = str(error)
    status = _status(error, text)
    said = redacted(_said(text), secrets)
    failed = f"{address} cannot be {action}"
    way = _WAYS.get(scheme, _WAYS["http"])
    asked = text.partition("\n")[0].partition("Server returned")[0]
    may_lack = status not in _DENIED and (status is None or status < _SERVER_FAULTS)
    if may_lack and _NO_CREDENTIALS.search(asked):
        why = f" ({credentials})" if credentials.startswith("none: ") else ""
        return Failure(AccessDenied(f"{failed}: no credentials were found{why}; {way}"))
    wrong_here = _wrong_here(text, failed=failed, said=said)
    if wrong_here is not None:
        return Failure(wrong_here)
    expired = _EXPIRED.search(text) is not None
    # S3 answers 400 to expired tokens, and to HEAD it gives no reason.
    if status in _DENIED or (status == _BAD_REQUEST and (expired or _CODE.search(text) is None)):
        if status == _BAD_REQUEST and scheme == "s3" and not expired:
            way = f"{way}; or set AWS_REGION, if the region is wrong"
        message = f"{failed}: {said} (credentials: {credentials}); {way}"
        return Failure(AccessDenied(message), expired=True)
    if isinstance(error, FileNotFoundError) or status in _NOT_FOUND:
        return Failure(_not_found(failed, address, text, scheme))
    if status is not None:
        return Failure(_of_status(status, f"{failed}: {said}", action), changed=status in _UNFIT)
    other = _of_web(text, failed=failed, said=said) if scheme == "http" else None
    other = other or _without_status(error, text, failed=failed, said=said)
    return Failure(other, changed=_UNFIT_RANGE.search(said) is not None)


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the first line of a text, without userinfo and queries of URLs and without the given secrets.

    Example:
        >>> redacted("GET https://me:pw@host/a?sig=1 failed", ["failed"])
        'GET https://host/a ...'
    """
    line = _URL.sub(r"\g<base>\g<rest>", text.partition("\n")[0])
    for secret in secrets:
        line = line.replace(secret, "...")
    return line[:_LIMIT]


def _status(error: Exception, text: str) -> int | None:
    found = _STATUS.search(text)
    if found is not None:
        return int(found[1])
    by_name = {"PermissionDeniedError": 403, "UnauthenticatedError": 401, "PreconditionError": 412}
    by_name |= {"NotModifiedError": 304, "AlreadyExistsError": 409}
    return by_name.get(type(error).__name__)


def _said(text: str) -> str:
    """Return the answer of the store: its status with the code and message of an XML body, else a line."""
    line = text.partition("\n")[0]
    code, reason = _CODE.search(text), _REASON.search(text)
    answer = line.rpartition("non-2xx status code: ")[2] if "non-2xx status code: " in line else line
    if code is None:
        return answer.rstrip(": ")
    status = answer.partition(":")[0]
    why = f" ({reason[1].splitlines()[0]})" if reason else ""
    return f"{status}: {code[1]}{why}"


def _not_found(failed: str, address: str, text: str, scheme: str) -> Exception:
    if "NoSuchBucket" in text or "ContainerNotFound" in text:
        bucket = "/".join(address.split("/")[:3])
        return DataNotFound(f"{failed}: there is no bucket {bucket}; check its name, endpoint and region")
    kind = "file" if scheme in {"http", "https"} else "object"
    return DataNotFound(f"{failed}: there is no such {kind}")


def _wrong_here(text: str, *, failed: str, said: str) -> Exception | None:
    """Return the error for a wrong region, clock or scheme of this side; None if nothing is wrong there."""
    certificate = _BAD_CERTIFICATE.search(text)
    if _OTHER_REGION.search(text):
        found = _REGION.search(text)
        region = repr(found[1] or found[2]) if found else "..."
        given = options_in_words(f"{{'region': {region}}}")
        way = f"set AWS_REGION to the region of the bucket, or give {given}"
        return Unreachable(f"{failed}: the bucket is in another region ({said}); {way}")
    if _CLOCK.search(text):
        return AccessDenied(
            f"{failed}: {said}: the clock of this machine is wrong; set it, for example by NTP"
        )
    if _NO_TLS.search(text):
        way = "write http:// instead of https://, in the address or the endpoint, or name the port of TLS"
        return Unreachable(f"{failed}: the server speaks no TLS at this port ({said}); {way}")
    if _PLAIN_HTTP_REFUSED in text:
        way = "leave allow_http out, or give an endpoint of https://"
        return InvalidArgument(f"{failed}: its address is of http://, and allow_http is False; {way}")
    if certificate is not None:
        way = f"give {_CERTIFICATE}, or for tests the option 'allow_invalid_certificates'"
        return Unreachable(f"{failed}: its certificate is not trusted ({certificate[1]}; {said}); {way}")
    return None


def _of_status(status: int, message: str, action: str) -> Exception:
    if status in _PASSING or (status >= _SERVER_FAULTS and status != _NOT_IMPLEMENTED):
        return Passing(message, refused=status in _REFUSING)
    if status == _CONFLICT and _UNDER_WAY.search(message):
        return Passing(message)
    if status == _CONFLICT and action == "written":
        return FileExistsError(message)
    return Unreachable(message)


def _of_web(text: str, *, failed: str, said: str) -> Exception | None:
    """Return the error for a fault of web servers alone; None for others."""
    if _NO_LENGTH.search(text):
        way = "download the file, or serve it from a server that sends Content-Length and Content-Range"
        return NoLength(f"{failed}: the server does not say how long the file is ({said}); {way}")
    if _REDIRECTS in text:
        way = "give the address of the file itself"
        return Unreachable(f"{failed}: the redirects of the server lead nowhere ({said}); {way}")
    return None


def _without_status(error: Exception, text: str, *, failed: str, said: str) -> Exception:
    odd = _ODD_KEY.search(said)
    if odd is not None:
        kinds = "a part that is empty, of dots, or with control characters"
        reason = f"the key {odd[1]!r} has {kinds}, and obstore lists none beside it"
        way = "delete or rename it, or give sk.Storage(filesystem=...), of fsspec, which lists such keys"
        return InvalidArgument(f"{failed}: {reason}; {way}")
    if type(error) is ValueError or "invalid path" in said:
        way = "name the files without it, or give sk.Storage(filesystem=...), which reads such keys"
        return InvalidArgument(f"{failed}: obstore refuses this key ({said}); {way}")
    if type(error).__name__ == "AlreadyExistsError":
        return FileExistsError(f"{failed}: it exists already")
    if "non-partial response" in text or type(error).__name__ == "NotSupportedError":
        way = "download the file, or serve it from a server that sends ranges"
        return Unreachable(f"{failed}: the server sends no byte ranges ({said}); {way}")
    kind = _KIND.search(text)
    if kind is not None:
        return Passing(f"{failed}: {_KINDS.get(kind[1], 'the connection failed')} ({said})")
    return (Passing if _CUT.search(text) else Unreachable)(f"{failed}: {said}")
