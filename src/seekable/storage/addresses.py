"""Names of objects: addresses in stores, such as ``s3://bucket/corpus/a.jsonl``, and names in the disk cache.

An address is used like a path: ``os.path.join`` and names relative to the address of a folder work. It holds
no secrets: users, passwords and queries of URLs are kept apart (``secrets_of``) by the module ``mounts``.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

import msgspec
import xxhash

from seekable.errors import InvalidArgument

ADDRESS_INSIDE = re.compile(r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]+)://")
"""The beginning of an address, alone or after the scheme of a spec (``shar:s3://bucket/cuts``)."""

SUFFIX_MARK = "~"
"""The character between a bucket or host and the suffix that ``mounts`` adds; no name of either has it."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_ALIASES = {"gcs": "gs", "s3a": "s3", "s3n": "s3", "abfs": "az", "abfss": "az", "azure": "az", "adl": "az"}
_WEB = {"http": ":80", "https": ":443"}
"""The schemes of web servers, with their default ports."""

_ENCODED_SLASH = "%2F"

_AZURE_HOSTS = re.compile(r"([a-z0-9]+)\.(?:blob|dfs)\.core\.windows\.net")
_WITH_BUCKETS = frozenset({"s3", "gs", "az"})


class Address(NamedTuple):
    """An object, or a folder, of a store.

    Attributes:
        scheme: ``s3``, ``gs``, ``az``, ``http``, ``https``, or a scheme of fsspec.
        authority: the bucket, the container (``container@account`` if the address names the account), or the
            host and port; perhaps with a suffix of ``mounts``.
        key: the name of the object below it; empty for the whole bucket. Of a web server it is the path of
            the URL as it is written, with its percent signs.
    """

    scheme: str
    authority: str
    key: str

    @property
    def mount(self) -> str:
        """The address of the whole bucket or host, such as ``s3://bucket``."""
        return f"{self.scheme}://{self.authority}"

    def __str__(self) -> str:
        """Return the address as text, without userinfo and query."""
        return f"{self.mount}/{self.key}" if self.key else self.mount


class UrlSecrets(NamedTuple):
    """The userinfo (``user:password``) and the query of a URL; both are empty for most addresses."""

    userinfo: str
    query: str


def is_address(path: str) -> bool:
    """Return True if a path is the address of an object or a folder in a store.

    Example:
        >>> is_address("s3://bucket/a.jsonl"), is_address("corpus/a.jsonl"), is_address("scp:s3://bucket/a.scp")
        (True, False, False)
    """
    if "://" not in path:
        return False
    match = _SCHEME.match(path)
    return match is not None and match[1].lower() != "file"


def parse(path: str) -> Address:
    """Return the parts of an address; userinfo and query are left out.

    The text of the result is the same address again. Other spellings of a scheme become the usual one:
    ``gcs`` is ``gs``, ``abfs``, ``abfss`` and ``azure`` are ``az``, and so is the URL of a blob of Azure.

    Raises:
        InvalidArgument: the path is not an address, it names no bucket or host, or it has a user where the
            store takes none.

    Example:
        >>> parse("s3://bucket/corpus/a.jsonl")
        Address(scheme='s3', authority='bucket', key='corpus/a.jsonl')
        >>> str(parse("https://me:pw@Host:443/a.jsonl?sig=1"))
        'https://host/a.jsonl'
        >>> str(parse("https://acc.blob.core.windows.net/box/a.jsonl"))
        'az://box@acc/a.jsonl'
    """
    scheme, authority, key = _split(path)
    if scheme in _WEB:
        return _of_web(scheme, authority.rpartition("@")[2].lower(), key.partition("?")[0])
    if scheme == "az":
        container, _, host = authority.partition("@")
        account = host.partition(".")[0]
        authority = f"{container}@{account}" if account else container
    elif scheme in _WITH_BUCKETS and "@" in authority:
        message = (
            f"an address of {scheme}:// has no user and no password before its bucket (got ...@"
            f"{authority.rpartition('@')[2]}): give credentials by the environment or "
            f"storage=sk.Storage(options=...)"
        )
        raise InvalidArgument(message)
    elif scheme not in _WITH_BUCKETS and ":" in authority.rpartition("@")[0]:
        userinfo, _, host = authority.rpartition("@")
        authority = f"{userinfo.partition(':')[0]}@{host}"
    if not authority and scheme in _WITH_BUCKETS:
        message = f"{path!r} names no bucket: expected an address such as {scheme}://bucket/folder/file.jsonl"
        raise InvalidArgument(message)
    return Address(scheme, authority, key)


def secrets_of(path: str) -> UrlSecrets:
    """Return the userinfo and the query of an address.

    Only web addresses have a query: elsewhere a question mark is a character of a key or of a glob.

    Example:
        >>> secrets_of("https://me:pw@host/a.jsonl?sig=1")
        UrlSecrets(userinfo='me:pw', query='sig=1')
        >>> secrets_of("s3://bucket/a?.jsonl")
        UrlSecrets(userinfo='', query='')
    """
    scheme, authority, key = _split(path)
    if scheme in _WITH_BUCKETS:
        return UrlSecrets("", "")
    userinfo = authority.rpartition("@")[0]
    if scheme in _WEB:
        return UrlSecrets(userinfo, key.partition("?")[2])
    return UrlSecrets(userinfo if ":" in userinfo else "", "")


def shown(path: str) -> str:
    """Return an address for messages: without userinfo, query, and the suffix of ``mounts``.

    A path that is not an address comes back as it is.

    Example:
        >>> shown("s3://bucket~1a2b3c4d/a.jsonl"), shown("https://me:pw@host/a?sig=1")
        ('s3://bucket/a.jsonl', 'https://host/a')
    """
    if not is_address(path):
        return path
    try:
        found = parse(path)
    except InvalidArgument:  # It may have a password nevertheless.
        scheme, _, rest = path.partition("://")
        return f"{scheme}://{rest.rpartition('@')[2]}"
    return str(found._replace(authority=found.authority.partition(SUFFIX_MARK)[0]))


def shown_item(text: str) -> str:
    """Return an item of a source as messages have it: an address, also within a spec, without its secrets.

    Example:
        >>> shown_item("shar:https://me:pw@host/cuts")
        'shar:https://host/cuts'
    """
    found = ADDRESS_INSIDE.search(text)
    return text if found is None else text[: found.start()] + shown(text[found.start() :])


def plain_name(root: str, name: str) -> str:
    """Return the name of a file below a folder as other stores have it: of web servers without percent signs.

    An encoded slash stays, because it does not end the name of a folder.

    Example:
        >>> plain_name("https://host/corpus", "part%200.jsonl"), plain_name("s3://bucket", "part%200.jsonl")
        ('part 0.jsonl', 'part%200.jsonl')
        >>> plain_name("https://host/files", "corpus%2Fa%20b.jsonl")
        'corpus%2Fa b.jsonl'
    """
    if "%" not in name or not is_web(root):
        return name
    return _ENCODED_SLASH.join(map(unquote, re.split(_ENCODED_SLASH, name, flags=re.IGNORECASE)))


def name_in_url(root: str, name: str) -> str:
    """Return the relative path of a file from its plain name: of web servers as URLs have it.

    Example:
        >>> name_in_url("https://host/corpus", "part 0.jsonl"), name_in_url("s3://bucket", "part 0.jsonl")
        ('part%200.jsonl', 'part 0.jsonl')
    """
    return _ENCODED_SLASH.join(map(quote, name.split(_ENCODED_SLASH))) if is_web(root) else name


def is_web(path: str) -> bool:
    """Return True for the address of a file or a folder of a web server."""
    match = _SCHEME.match(path)
    return match is not None and match[1].lower() in _WEB


def _split(path: str) -> tuple[str, str, str]:
    match = _SCHEME.match(path)
    if match is None:
        message = f"{path!r} is not an address of a store: expected one such as s3://bucket/folder/file.jsonl"
        raise InvalidArgument(message)
    scheme = match[1].lower()
    rest = path[match.end() :]
    if scheme in _WEB:
        rest = rest.partition("#")[0]
        end = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
        authority, key = rest[:end], rest[end:].removeprefix("/")
    else:
        authority, _, key = rest.partition("/")
    return _ALIASES.get(scheme, scheme), authority, key


def _of_web(scheme: str, host: str, key: str) -> Address:
    host = host.removesuffix(_WEB[scheme])
    if not host:
        message = (
            f"an address of {scheme} names no host: expected an address such as {scheme}://host/file.jsonl"
        )
        raise InvalidArgument(message)
    azure = _AZURE_HOSTS.fullmatch(host)
    if azure is None:
        return Address(scheme, host, key)
    container, _, blob = key.partition("/")
    if not container:
        message = f"{scheme}://{host} names no container: expected {scheme}://{host}/container/file.jsonl"
        raise InvalidArgument(message)
    return Address("az", f"{container}@{azure[1]}", unquote(blob))


UNIT_BYTES = 256 << 10
"""The size of a unit: the bytes that are transferred in about the time that any request takes."""

_COMMIT = re.compile(r"(hf://datasets/[^@]+)@[0-9a-f]{40}/")
"""The commit of a file on the Hub: files of several commits that have one content are one object."""

_FEWEST_EXTENTS, _MOST_EXTENT_UNITS = 256, 256


class ObjectKey(msgspec.Struct, frozen=True):
    """The name of an object in the cache, and what is to be known of it.

    Attributes:
        digest: 32 hexadecimal digits: a digest of the other three.
        size: the size of the object in bytes.
        identity: the number that stands for its content.
        address: its address, without userinfo and query.
    """

    digest: str
    size: int
    identity: int
    address: str

    def unit_bytes(self, unit: int) -> int:
        """Return the number of bytes of a unit: 256 KiB, or fewer for the last one."""
        return min(UNIT_BYTES, self.size - unit * UNIT_BYTES)


def object_key(address: str, *, size: int, identity: int) -> str:
    """Return the name of an object in the cache: a digest, and what is to be known of the object.

    Args:
        address: its address; userinfo and query have no influence.
        size: its size in bytes.
        identity: the number that stands for its content.

    Example:
        >>> key = object_key("https://me:pw@host/a.jsonl?sig=1", size=5, identity=7)
        >>> key == object_key("https://host/a.jsonl", size=5, identity=7), key.split(" ", 1)[1]
        (True, '5 7 https://host/a.jsonl')
    """
    plain = str(parse(address)) if is_address(address) else address
    plain = _COMMIT.sub(r"\1/", plain, count=1)
    digest = xxhash.xxh3_128_hexdigest(f"{plain}\0{identity}\0{size}".encode("utf-8", "surrogateescape"))
    return f"{digest} {size} {identity} {shown(address)}"


def parsed_key(ref_key: str) -> ObjectKey:
    """Return the parts of what `object_key` returned.

    Example:
        >>> parsed_key(object_key("s3://bucket/a.jsonl", size=5, identity=7)).address
        's3://bucket/a.jsonl'
    """
    digest, size, identity, address = ref_key.split(" ", 3)
    return ObjectKey(digest, int(size), int(identity), address)


def unit_count(size: int) -> int:
    """Return the number of units of an object.

    Example:
        >>> unit_count(0), unit_count(1), unit_count(256 << 10), unit_count((256 << 10) + 1)
        (0, 1, 1, 2)
    """
    return -(-size // UNIT_BYTES)


def extent_units(most_bytes: int) -> int:
    """Return how many units an extent has, given the limit of the cache in bytes.

    An extent takes at most one of 256 parts of the limit, because extents are evicted as a whole, and blocks
    that are still needed may lie in one with others.

    Example:
        >>> [extent_units(most_bytes) for most_bytes in (1 << 20, 1 << 30, 1 << 40)]
        [1, 16, 256]
    """
    units = most_bytes // _FEWEST_EXTENTS // UNIT_BYTES
    return min(1 << max(units.bit_length() - 1, 0), _MOST_EXTENT_UNITS)
