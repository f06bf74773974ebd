"""Objects of S3, GCS, Azure and web servers, by obstore."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, final

from seekable._optional import optional
from seekable.errors import (
    AccessDenied,
    DataNotFound,
    IndexStale,
    InvalidArgument,
    SeekableError,
    Unreachable,
)
from seekable.remote.stores.object_store import Passing, Stat, Store, changed, in_thread, plain_etag
from seekable.remote.stores.obstore_clients import key_of_path, path_of_key
from seekable.remote.stores.obstore_errors import AUTHORIZATION, Failure, NoLength, failure_of
from seekable.storage.addresses import Address, shown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    import obstore
    from typing_extensions import Buffer

    from seekable.remote.stores.object_store import FolderListing, Page, Pin
    from seekable.remote.stores.obstore_clients import Client
else:
    obstore = optional("obstore", extra="remote")

__all__ = ["ObstoreStore", "WholeUrls"]

_T = TypeVar("_T")

_PAGE: Final = 1000
_SECOND_NS: Final = 10**9
_MULTIPART_BYTES: Final = 32 << 20
"""Larger objects are written in several requests, of this many bytes each, if there is no condition."""

_WEB: Final = frozenset({"http", "https"})
_ORDERED: Final = frozenset({"s3", "gs", "az"})
"""The schemes whose listings are sorted by key."""

_QUOTING: Final = frozenset({"s3", "gs", "az", "http", "https"})
"""The schemes whose conditions have etags in quotes, though some listings leave the quotes out."""

_NO_LISTS: Final = ("405 Method Not Allowed", "501 ")
"""Statuses of web servers that list nothing."""
_NO_WRITES: Final = (*_NO_LISTS, "not yet implemented by HttpStore")
"""Those of web servers that take nothing; conditional writes are never sent to them."""
_MOST_CLIENTS: Final = 64
"""The number of whole URLs whose clients stay open."""
_PAGES: Final = ("text/html", "application/xhtml+xml")
_PAGE_SUFFIXES: Final = (".html", ".htm", ".xhtml")


@final
class ObstoreStore(Store):
    """The objects of one bucket, container or host, read by a client of obstore.

    Credentials that expired are asked for again, once a failure: the client is made anew.
    """

    fork_safe = False

    def __init__(
        self,
        mount: Address,
        connect: Callable[[], Client],
        *,
        secrets: Sequence[str],
        only_key: str | None = None,
    ) -> None:
        """Make a store. The client is made with the first request.

        Args:
            mount: the address of the whole bucket or host.
            connect: returns a new client.
            secrets: texts that no message may have.
            only_key: of a store of one URL the key of its object, which the client has under the key "".
        """
        self._mount = mount
        self.lists_in_order = mount.scheme in _ORDERED
        self._connect = connect
        self._secrets = secrets
        self._only_key = only_key
        self._client: Client | None = None
        self._connecting: asyncio.Future[Client] | None = None
        self._client_has_answered = False
        self._without_ranges: dict[str, str] = {}
        """Why a file of a web server can be read as a whole alone, by its key."""
        self.has_answered = False
        """True after the first answer to a request."""

    @property
    def credentials(self) -> str:
        """The kind of the credentials, without their content."""
        if self._client is None:
            self._client = self._connect()
        return self._client.credentials

    def shown(self, key: str) -> str:
        """Return the address of an object for messages, without secrets."""
        return shown(str(self._mount._replace(key=key)))

    async def stat(self, key: str) -> Stat:
        """Return the size and the entity tag of an object."""
        path = self._path(key)
        if self._mount.scheme in _WEB:
            return self._stat(await self._meta_of_get(key, path), key=key)
        meta = await self._unconditional(key, lambda store: obstore.head_async(store, path))
        return self._stat(meta, key=key)

    async def _meta_of_get(self, key: str, path: str) -> Any:
        """Return the description of a file of a web server from the answer to a request for its first byte.

        HEAD would be another request than those that read: signed URLs are for GET alone, and some servers
        have no HEAD, or answer it without a length, or with that of the file before they decompress it.
        """

        async def get(store: Any, **options: Any) -> Any:
            result = await obstore.get_async(store, path, **options)
            self._check_page(key, result)
            return result

        async def first_byte(store: Any) -> Any:
            result = await get(store, options={"range": (0, 1)})
            await result.bytes_async()  # So the connection is free for the next request.
            return result

        try:
            result = await self._try(key, "read", first_byte)
        except _Changed:  # An empty file has no first byte.
            result = await self._unconditional(key, get)
        except (NoLength, Unreachable) as error:
            try:
                result = await self._unconditional(key, get)
            except NoLength as again:
                raise Unreachable(str(again)) from None
            self._without_ranges[key] = str(error)
        return result.meta

    def _check_page(self, key: str, result: Any) -> None:
        """Refuse a web page in the place of a file of a web server."""
        kind = result.attributes.get("Content-Type") if self._mount.scheme in _WEB else None
        if _is_page(key, kind):
            raise _page_refused(self.shown(key), kind, self.credentials)

    async def read(self, key: str, start: int, stop: int, *, pin: Pin) -> Buffer:
        """Return exactly the bytes of a range of exactly the content that ``pin`` describes."""
        if start >= stop:
            return b""
        path = self._path(key)
        options = self._conditions(start, stop, pin)
        if "range" in options and key in self._without_ranges:
            raise Unreachable(self._without_ranges[key])

        async def attempt(store: Any) -> tuple[Any, Any]:
            result = await obstore.get_async(store, path, options=options)
            self._check_page(key, result)
            self._check_content(key, result.meta, pin)
            return result, await result.bytes_async()

        try:
            result, data = await self._try(key, f"read (bytes {start} to {stop})", attempt)
        except DataNotFound as error:
            message = f"{error}; it was deleted or renamed after it was listed: open the data again"
            raise DataNotFound(message) from None
        except _Changed as error:
            found = await self.stat(key)
            if found.identity == pin.identity and found.size == pin.size:
                raise Passing(str(error)) from None
            raise changed(self.shown(key), found, pin) from None
        if tuple(result.range) != (start, stop) or len(data) != stop - start:
            message = (
                f"{self.shown(key)}: the answer for the bytes {start} to {stop} has {len(data)} bytes, from "
                f"{result.range[0]} to {result.range[1]}"
            )
            raise Passing(message)
        if pin.etag is None:
            pin.etag = result.meta["e_tag"]
        checked: Buffer = data
        return checked

    async def list(self, prefix: str, *, after: str = "", before: str = "") -> AsyncIterator[Page]:
        """Yield the objects below a folder in pages, in the order of the store."""
        folder = prefix.strip("/")
        if not folder and not after:
            await self.list_folder("")  # It finds the keys from which obstore takes a slash away.
        last = after
        async for raw in self._pages(folder, after):
            page = list(map(self._stat, raw))
            last = page[-1].key if page else last
            yield _without_markers([stat for stat in page if _is_between(stat.key, after, before)])
            if before and self.lists_in_order and last >= before:
                return

    async def _pages(self, folder: str, after: str) -> AsyncIterator[Any]:
        """Yield the pages of a listing, as obstore gives them."""

        async def begin(store: Any) -> tuple[Any, Any]:
            prefix, offset = self._path(folder), self._path(after)
            stream = obstore.list(store, prefix or None, offset=offset or None, chunk_size=_PAGE)
            pages = aiter(stream)
            return pages, await anext(pages, None)

        pages, page = await self._unconditional(folder, begin, is_list=True)
        while page is not None:
            yield page
            client = await self._connected()
            try:
                page = await anext(pages, None)
            except Exception as error:  # noqa: BLE001 - errors of obstore have no root of their own
                failure = self._failure(error, folder, "listed", is_list=True)
            else:
                continue
            if not (failure.changed or failure.expired):
                raise failure.error from None
            if failure.expired:
                self._forget(client)  # The next listing has new credentials.
            raise Passing(str(failure.error)) from None

    async def list_folder(self, prefix: str) -> FolderListing:
        """Return the folders and the objects directly below a folder."""
        folder = self._path(prefix.strip("/"))
        found = await self._unconditional(
            prefix,
            lambda store: obstore.list_with_delimiter_async(store, folder or None),
            is_list=True,
        )
        folders = [self._key(name).rstrip("/") for name in found["common_prefixes"]]
        stats = [self._stat(meta) for meta in found["objects"]]
        own = prefix.strip("/")
        if "" in folders:
            raise self._slashed(own, "there are keys that begin with '/'")
        if any(stat.size and stat.key == own for stat in stats):
            raise self._slashed(own, f"there is the key {f'{own}/'!r}, which ends with '/' and is not empty")
        markers = {own, *folders}
        return folders, [stat for stat in stats if stat.size or stat.key not in markers]

    def _slashed(self, folder: str, what: str) -> InvalidArgument:
        """Return the error for keys whose objects obstore cannot read, because it takes a slash away."""
        return InvalidArgument(
            f"{self.shown(folder)} cannot be listed: {what}, and obstore reads no such object; delete "
            f"or rename it, or read it by sk.Storage(filesystem=...), of fsspec"
        )

    async def put(self, key: str, data: Buffer, *, replacing: Stat | Literal["any"] | None) -> Stat:
        """Write a whole object and return its description."""
        path = self._path(key)
        size = memoryview(data).nbytes
        arguments: dict[str, Any] = {"mode": _mode(replacing), "use_multipart": False}
        if replacing == "any" and size > _MULTIPART_BYTES:
            arguments = {"use_multipart": True, "chunk_size": _MULTIPART_BYTES, "max_concurrency": 4}
        try:
            done = await self._try(
                key, "written", lambda store: obstore.put_async(store, path, data, **arguments)
            )
        except FileExistsError as error:
            if replacing == "any":  # Another write of this object is under way.
                raise Passing(str(error)) from None
            raise
        except _Changed as error:
            if replacing == "any":
                raise Passing(str(error)) from None
            if replacing is None:
                message = f"{self.shown(key)} cannot be written: it exists already"
                raise FileExistsError(message) from None
            message = (
                f"{self.shown(key)} cannot be replaced: another writer has changed it since it was read "
                f"(its etag was {replacing.etag}): {error}"
            )
            raise IndexStale(message) from None
        if done["e_tag"] is None:
            return await self.stat(key)
        return Stat(key, size, done["e_tag"], done["version"], 0)

    async def delete(self, key: str) -> None:
        """Delete an object; nothing happens if there is none."""
        path = self._path(key)
        try:
            await self._try(key, "deleted", lambda store: obstore.delete_async(store, path))
        except DataNotFound:
            return
        except _Changed as error:
            raise Passing(str(error)) from None

    async def _connected(self) -> Client:
        """Return the client. It is made in a thread, because tools of a cloud may wait for a log-in there."""
        if self._client is None:
            if self._connecting is None or self._connecting.done():
                self._connecting = asyncio.ensure_future(in_thread(self._connect))
                self._connecting.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._client = await asyncio.shield(self._connecting)
        return self._client

    async def _unconditional(
        self, key: str, call: Callable[[Any], Awaitable[_T]], *, is_list: bool = False
    ) -> _T:
        """Await a call that reads or lists, without a condition or a range.

        Raises:
            Passing: the answer is of a condition or a range (304, 412, 416) that was not in the request.
        """
        try:
            return await self._try(key, "listed" if is_list else "read", call, is_list=is_list)
        except _Changed as error:
            raise Passing(str(error)) from None

    async def _try(
        self, key: str, action: str, call: Callable[[Any], Awaitable[_T]], *, is_list: bool = False
    ) -> _T:
        """Await a call with the client; after expired credentials once more, with a new client."""
        client = await self._connected()
        try:
            result = await call(client.store)
        except (SeekableError, Passing):
            raise
        except Exception as error:  # noqa: BLE001 - errors of obstore have no root of their own
            failure = self._failure(error, key, action, is_list=is_list)
        else:
            self._client_has_answered = self.has_answered = True
            return result
        if not (failure.expired and self._client_has_answered):
            raise _raised(failure) from None  # Outside of the handler: obstore's error has the whole URL.
        self._forget(client)
        return await self._try(key, action, call, is_list=is_list)

    def _forget(self, client: Client) -> None:
        """Let the next request make a new client, with new credentials."""
        if self._client is client:
            self._client, self._client_has_answered = None, False

    def _failure(self, error: Exception, key: str, action: str, *, is_list: bool) -> Failure:
        scheme = self._mount.scheme
        if is_list and scheme in _WEB and any(status in str(error) for status in _NO_LISTS):
            message = (
                f"{self.shown(key)}: this web server lists no files; name each file that is read, and write "
                f"to a folder of this machine or to a bucket"
            )
            return Failure(InvalidArgument(message))
        if action == "written" and scheme in _WEB and any(text in str(error) for text in _NO_WRITES):
            way = "write to a folder of this machine, or to an address of s3://, gs:// or az://"
            message = f"{self.shown(key)} cannot be written: this web server takes no files; {way}"
            return Failure(InvalidArgument(message))
        return failure_of(
            error,
            address=self.shown(key),
            scheme="http" if scheme == "https" else scheme,
            action=action,
            credentials=self.credentials,
            secrets=self._secrets,
        )

    def _path(self, key: str) -> str:
        """Return the name of an object for obstore, which encodes paths of URLs itself."""
        if self._only_key is not None:
            if key != self._only_key:
                message = f"{self.shown(key)}: the client is of another file, {self.shown(self._only_key)}"
                raise InvalidArgument(message)
            return ""
        return path_of_key(key) if self._mount.scheme in _WEB else key

    def _key(self, path: str) -> str:
        return key_of_path(path) if self._mount.scheme in _WEB else path

    def _stat(self, meta: Any, *, key: str | None = None) -> Stat:
        modified = meta["last_modified"]
        modified_ns = 0 if modified is None else round(modified.timestamp() * 1e6) * 1000
        name = self._key(meta["path"]) if key is None else key
        return Stat(name, meta["size"], meta["e_tag"], meta["version"], modified_ns)

    def _conditions(self, start: int, stop: int, pin: Pin) -> Any:
        options: dict[str, Any] = {}
        if start > 0 or stop < pin.size:
            options["range"] = (start, stop)
        if pin.version is not None:
            options["version"] = pin.version
        if pin.etag and not pin.etag.startswith("W/"):
            bare = self._mount.scheme in _QUOTING and not pin.etag.startswith('"')
            options["if_match"] = f'"{pin.etag}"' if bare else pin.etag
        return options

    def _check_content(self, key: str, meta: Any, pin: Pin) -> None:
        """Raise an error if an answer is of other content than the pinned one, or not all of it.

        Raises:
            IndexStale: the object has other content now.
            Passing: it has the same etag, and the answer another size: it was cut off.
        """
        found = self._stat(meta, key=key)
        same = found.identity == pin.identity or _same_etag(found.etag, pin.etag)
        if not same:
            raise changed(self.shown(key), found, pin)
        if found.size != pin.size:
            sizes = f"{found.size} bytes instead of {pin.size}"
            message = f"{self.shown(key)}: the answer has the expected etag, but is of {sizes}"
            raise Passing(message)


class _Changed(Exception):
    """The store answers that a condition or a range of the request does not fit the object."""


def _raised(failure: Failure) -> Exception:
    return _Changed(str(failure.error)) if failure.changed else failure.error


def _mode(replacing: Stat | Literal["any"] | None) -> Any:
    if replacing is None or isinstance(replacing, str):
        return "create" if replacing is None else "overwrite"
    condition = {"e_tag": replacing.etag, "version": replacing.version}
    return {name: value for name, value in condition.items() if value is not None}


def _is_page(key: str, content_type: str | None) -> bool:
    """Return True if the answer for a file is a web page, and the name of the file is not that of one.

    Such a page asks for a log-in, or says that there is an error.

    Example:
        >>> _is_page("a.jsonl", "text/html; charset=utf-8"), _is_page("a.html", "text/html")
        (True, False)
    """
    kind = str(content_type or "").lower()
    return kind.startswith(_PAGES) and not key.lower().endswith(_PAGE_SUFFIXES)


def _page_refused(shown: str, content_type: str | None, credentials: str) -> AccessDenied:
    """Return the error for a web page in the place of a file.

    Args:
        shown: the address of the file, without secrets.
        content_type: that of the answer.
        credentials: a text for the kind of the credentials that were used.
    """
    return AccessDenied(
        f"{shown} cannot be read: the server answers with a web page ({content_type}) in the place of the "
        f"file, such as one that asks for a log-in (credentials: {credentials}); give the address of the "
        f"file, or {AUTHORIZATION}, or download the file"
    )


def _same_etag(one: str | None, other: str | None) -> bool:
    """Return True if two etags are of one content, be they weak or without quotes."""
    return bool(one and other) and plain_etag(str(one)) == plain_etag(str(other))


def _is_between(key: str, after: str, before: str) -> bool:
    """Return True if a key comes after one and before another; an empty one is no bound."""
    return key > after and (not before or key < before)


def _without_markers(page: Page) -> Page:
    """Leave out empty objects that stand for a folder: the keys of the next objects begin with theirs."""
    last = len(page) - 1
    return [
        stat
        for at, stat in enumerate(page)
        if stat.size or at == last or not page[at + 1].key.startswith(f"{stat.key}/")
    ]


@final
class WholeUrls(Store):
    """The files of one host.

    A file whose URL has a query, or a path that obstore would send in another way than it is written, such as
    one with an encoded slash, is read by a client that is made of the whole URL.
    """

    fork_safe = False

    def __init__(self, others: ObstoreStore, whole: Callable[[str], ObstoreStore | None]) -> None:
        """Take the store of most files, and a maker of the others.

        Args:
            others: the store of the files whose keys are enough.
            whole: returns a new store for the key of a file that is read by its whole URL; else None.
        """
        self._others = others
        self._whole = whole
        self._open: OrderedDict[str, ObstoreStore] = OrderedDict()

    @property
    def credentials(self) -> str:
        """The kind of the credentials, without their content."""
        return next(iter(self._open.values()), self._others).credentials

    @property
    def has_answered(self) -> bool:
        """True after the first answer to a request."""
        return self._others.has_answered or any(store.has_answered for store in self._open.values())

    def shown(self, key: str) -> str:
        """Return the address of an object for messages, without secrets."""
        return self._others.shown(key)

    async def stat(self, key: str) -> Stat:
        """Return the size and the entity tag of an object."""
        return await self._of(key).stat(key)

    async def read(self, key: str, start: int, stop: int, *, pin: Pin) -> Buffer:
        """Return exactly the bytes of a range of exactly the content that ``pin`` describes."""
        return await self._of(key).read(key, start, stop, pin=pin)

    def list(self, prefix: str, *, after: str = "", before: str = "") -> AsyncIterator[Page]:
        """Yield the objects below a folder in pages: web servers raise InvalidArgument."""
        return self._others.list(prefix, after=after, before=before)

    async def list_folder(self, prefix: str) -> FolderListing:
        """Return the objects directly below a folder: web servers raise InvalidArgument."""
        return await self._others.list_folder(prefix)

    async def put(self, key: str, data: Buffer, *, replacing: Stat | Literal["any"] | None) -> Stat:
        """Write a whole object and return its description; many web servers raise InvalidArgument."""
        return await self._of(key).put(key, data, replacing=replacing)

    async def delete(self, key: str) -> None:
        """Delete an object; nothing happens if there is none."""
        await self._of(key).delete(key)

    def _of(self, key: str) -> ObstoreStore:
        """Return the store of a file: the open one, or a new one."""
        found = self._open.pop(key, None) or self._whole(key)
        if found is None:
            return self._others
        self._open[key] = found
        if len(self._open) > _MOST_CLIENTS:
            self._open.popitem(last=False)
        return found
