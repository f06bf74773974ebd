"""Objects of any store that fsspec reads: schemes that obstore lacks, and file systems of users."""

from __future__ import annotations

import re
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, final

from seekable._optional import optional
from seekable.errors import (
    AccessDenied,
    DataNotFound,
    IndexStale,
    InvalidArgument,
    MissingDependency,
    SeekableError,
    Unreachable,
    WrongType,
)
from seekable.remote.stores.object_store import Passing, Stat, Store, changed, in_thread
from seekable.remote.stores.obstore_errors import redacted
from seekable.storage.addresses import SUFFIX_MARK, Address, shown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from datetime import datetime

    import fsspec  # type: ignore[import-untyped]
    from typing_extensions import Buffer

    from seekable.remote.stores.object_store import FolderListing, Page, Pin
    from seekable.remote.stores.storage_options import StorageOptions
else:
    fsspec = optional("fsspec", extra="remote")

__all__ = ["FsspecStore", "protocol_of"]

_PAGE: Final = 1000
_NEEDED: Final = ("info", "cat_file", "find", "ls")
_ETAGS: Final = ("ETag", "etag", "e_tag", "md5Hash", "content_md5", "sha256", "ukey")
_TIMES: Final = ("LastModified", "last_modified", "mtime", "modified", "updated", "created")
_SECOND_NS: Final = 10**9
_PACKAGES: Final = {"smbclient": "smbprotocol", "libarchive": "libarchive-c", "XRootD": "fsspec-xrootd"}
"""The packages that bring modules of other names."""
_LIBRARY: Final = re.compile(
    r"unable to load lib|load lib\w+ failed|cannot open shared object", re.IGNORECASE
)
"""Words of the error of a file system whose native library is missing, such as that of HDFS."""


def protocol_of(file_system: object) -> str:
    """Return the scheme of the addresses of a file system.

    Raises:
        WrongType: the object is not an fsspec file system.
    """
    missing = [name for name in _NEEDED if not callable(getattr(file_system, name, None))]
    if missing:
        message = (
            f"storage must be an fsspec file system (got a {type(file_system).__name__}, without "
            f"{', '.join(missing)})"
        )
        raise WrongType(message)
    protocol = getattr(file_system, "protocol", "fsspec")
    return protocol if isinstance(protocol, str) else str(next(iter(protocol), "fsspec"))


@final
class FsspecStore(Store):
    """The objects of a file system of fsspec.

    Its calls are synchronous and run in threads. Requests have no conditions: the description of an object is
    compared after each range. If it is the pinned one then, so are the bytes that came before.

    An object is written by one call of the file system. File systems that write in place, such as those of
    SFTP and SMB, show it unfinished meanwhile, and after a crash; two writers at once are not noticed.
    """

    fork_safe = False

    def __init__(self, mount: Address, options: StorageOptions) -> None:
        """Make a store. The file system is made with the first request.

        Args:
            mount: the address of the whole bucket or host.
            options: the options; their ``file_system``, or the arguments of one.
        """
        self._mount = mount
        self._options = options
        self._file_system: Any = options.file_system
        self._making = threading.Lock()

    def shown(self, key: str) -> str:
        """Return the address of an object for messages, without secrets."""
        return shown(str(self._mount._replace(key=key)))

    async def stat(self, key: str) -> Stat:
        """Return the size and the entity tag of an object."""
        info = await self._call(key, "read", _info)
        if info.get("type") == "directory":
            message = f"{self.shown(key)} is a folder, not an object"
            raise DataNotFound(message)
        return _stat(key, info)

    async def read(self, key: str, start: int, stop: int, *, pin: Pin) -> Buffer:
        """Return exactly the bytes of a range; then the object is compared with ``pin``."""
        if start >= stop:
            return b""
        try:
            data = await self._call(
                key, "read", lambda files, path: files.cat_file(path, start=start, end=stop)
            )
        except (Passing, Unreachable):
            await self._compare(key, pin)  # The range may be beyond the end of other content.
            raise
        await self._compare(key, pin)
        if len(data) != stop - start:
            message = f"{self.shown(key)}: {len(data)} bytes came for the bytes {start} to {stop}"
            raise Passing(message)
        read: Buffer = data
        return read

    async def list(self, prefix: str, *, after: str = "", before: str = "") -> AsyncIterator[Page]:
        """Yield the objects below a folder in pages, sorted by key."""
        try:
            found = await self._call(prefix, "listed", _find)
        except DataNotFound:
            return
        stats = sorted((self._listed(info) for info in found.values()), key=lambda stat: stat.key)
        folder = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        kept = [
            stat
            for stat in stats
            if stat.key.startswith(folder) and stat.key > after and (not before or stat.key < before)
        ]
        for at in range(0, len(kept), _PAGE):
            yield kept[at : at + _PAGE]

    async def list_folder(self, prefix: str) -> FolderListing:
        """Return the folders and the objects directly below a folder."""
        try:
            found = await self._call(prefix, "listed", _ls)
        except DataNotFound:
            return [], []
        folders = [self._key(info["name"]) for info in found if info.get("type") == "directory"]
        objects = [self._listed(info) for info in found if info.get("type") != "directory"]
        return folders, [stat for stat in objects if stat.key != prefix.strip("/")]

    async def put(self, key: str, data: Buffer, *, replacing: Stat | Literal["any"] | None) -> Stat:
        """Write a whole object. Conditions are compared before, which another writer can come between."""
        if replacing != "any":
            await self._check_replaced(key, replacing)

        def write(files: Any, path: str) -> None:
            if "/" in path:
                files.makedirs(path.rpartition("/")[0], exist_ok=True)
            files.pipe_file(path, bytes(data))

        await self._call(key, "written", write)
        return await self.stat(key)

    async def delete(self, key: str) -> None:
        """Delete an object; nothing happens if there is none."""
        try:
            await self._call(key, "deleted", lambda files, path: files.rm_file(path))
        except DataNotFound:
            return

    async def _compare(self, key: str, pin: Pin) -> None:
        """Raise IndexStale if an object has other content than the pinned one."""
        found = await self.stat(key)
        if found.identity != pin.identity or found.size != pin.size:
            raise changed(self.shown(key), found, pin)
        pin.etag = pin.etag or found.etag

    async def _check_replaced(self, key: str, replacing: Stat | str | None) -> None:
        try:
            found = await self.stat(key)
        except DataNotFound:
            found = None
        if isinstance(replacing, Stat):
            if found is None or found.identity != replacing.identity:
                message = (
                    f"{self.shown(key)} cannot be replaced: another writer has changed it since it was read"
                )
                raise IndexStale(message)
        elif found is not None:
            message = f"{self.shown(key)} cannot be written: it exists already"
            raise FileExistsError(message)

    async def _call(self, key: str, action: str, call: Callable[[Any, str], Any]) -> Any:
        """Run a call of the file system in a thread; its errors become those of this library."""
        try:
            return await in_thread(partial(self._run, key, call))
        except (SeekableError, Passing):
            raise
        except Exception as error:  # noqa: BLE001 - each file system has errors of its own
            raise self._error(error, f"{self.shown(key)} cannot be {action}") from None

    def _run(self, key: str, call: Callable[[Any, str], Any]) -> Any:
        with self._making:
            if self._file_system is None:
                self._file_system = self._made()
        return call(self._file_system, self._path(key.strip("/") if key.endswith("/") else key))

    def _made(self) -> Any:
        """Return the file system of the scheme."""
        scheme = self._mount.scheme
        try:
            kind = fsspec.get_filesystem_class(scheme)
        except ValueError:
            message = f"no package reads addresses of {scheme}://: obstore and fsspec have no such scheme"
            raise InvalidArgument(message) from None
        except MissingDependency:
            raise
        except ImportError as error:
            name = getattr(error.__cause__, "name", None) or ""
            way = f": pip install {_PACKAGES.get(name, name)}" if name else ""
            message = f"reading {scheme}:// needs a package that is not installed ({error}){way}"
            raise MissingDependency(message) from None
        authority = self._mount.authority.partition(SUFFIX_MARK)[0]
        from_url = kind._get_kwargs_from_urls(f"{scheme}://{authority}/")  # noqa: SLF001 - as fsspec's own url_to_fs
        try:
            return kind(**{**from_url, **self._options.values})
        except (OSError, ImportError) as error:
            if isinstance(error, OSError) and not _LIBRARY.search(str(error)):
                raise
            said = redacted(f"{type(error).__name__}: {error}", self._options.secrets)
        message = f"reading {scheme}:// needs a library that is not on this machine, or not found: {said}"
        raise MissingDependency(message)

    def _error(self, error: Exception, failed: str) -> Exception:
        said = redacted(f"{type(error).__name__}: {error}", self._options.secrets)
        if isinstance(error, FileNotFoundError):
            return DataNotFound(f"{failed}: there is no such object")
        if isinstance(error, PermissionError):
            return AccessDenied(f"{failed}: {said}; give other credentials to the file system")
        if isinstance(error, FileExistsError):
            return FileExistsError(f"{failed}: it exists already")
        if isinstance(error, OSError | TimeoutError):
            return Passing(f"{failed}: {said}")
        return Unreachable(f"{failed}: {said}")

    def _path(self, key: str) -> str:
        """Return the name of an object for the file system."""
        mount = self._mount._replace(authority=self._mount.authority.partition(SUFFIX_MARK)[0])
        address = str(mount._replace(key=key))
        strip = getattr(self._file_system, "_strip_protocol", None) or (lambda text: text.partition("://")[2])
        return str(strip(address))

    def _key(self, path: str) -> str:
        """Return the key for a name of the file system."""
        root = self._path("").strip("/")
        name = str(path).strip("/")
        return name.removeprefix(root).strip("/") if root else name

    def _listed(self, info: Mapping[str, Any]) -> Stat:
        return _stat(self._key(info["name"]), info)


def _info(files: Any, path: str) -> Any:
    files.invalidate_cache()
    return files.info(path)


def _find(files: Any, path: str) -> Any:
    files.invalidate_cache()
    return files.find(path, detail=True)


def _ls(files: Any, path: str) -> Any:
    files.invalidate_cache()
    return files.ls(path, detail=True)


def _stat(key: str, info: Mapping[str, Any]) -> Stat:
    etag = next((info[name] for name in _ETAGS if isinstance(info.get(name), str)), None)
    modified_ns = _nanoseconds(next((info[name] for name in _TIMES if info.get(name)), None))
    size = int(info.get("size") or 0)
    if etag is None and modified_ns % _SECOND_NS:
        etag = f"{modified_ns}-{size}"  # All answers of such a file system have the exact time.
    return Stat(key, size, etag, info.get("VersionId"), modified_ns)


def _nanoseconds(time: datetime | float | str | None) -> int:
    if time is None or isinstance(time, str):
        return 0
    seconds = time if isinstance(time, int | float) else time.timestamp()
    return round(seconds * _SECOND_NS)
