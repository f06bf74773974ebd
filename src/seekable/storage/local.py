"""Files of this machine that the library writes, and the choice between them and those that lie far away."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Final, final

from seekable._arguments import checked_path
from seekable.errors import InvalidArgument
from seekable.storage.addresses import is_address
from seekable.storage.asked import address_of_path
from seekable.storage.far import far
from seekable.storage.files import put_in_place, regular_only, write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from seekable.storage.far import Output

__all__ = ["LOCAL", "output_of", "output_path"]


@final
class _LocalFiles:
    """`Output` over the functions of ``os``."""

    def size(self, path: str) -> int | None:
        try:
            return os.stat(path).st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def sizes(self, folder: str) -> dict[str, int]:
        if not os.path.isdir(folder):
            return {}
        with os.scandir(folder) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}

    def names(self, folder: str) -> list[str]:
        return os.listdir(folder)

    def has_folder(self, folder: str) -> bool:
        return os.path.isdir(folder)

    def make_folder(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)

    def read(self, path: str) -> bytes:
        with open(path, "rb", opener=regular_only) as file:
            return file.read()

    def write(self, path: str, data: bytes | memoryview) -> None:
        write_atomically(path, [data])

    def seen(self, path: str) -> object:
        """Return None: a lock of this machine keeps other writers out."""

    def replace(self, path: str, data: bytes, *, old: object) -> object:
        self.write(path, data)
        return old

    def place(self, made: str, path: str) -> None:
        put_in_place(made, path)

    def local(self, paths: Sequence[str]) -> AbstractContextManager[list[str]]:
        return contextlib.nullcontext(list(paths))

    def kept_local(self, path: str, size: int) -> str:
        return path

    def delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def scratch(self, folder: str) -> str:
        return folder


LOCAL: Final[Output] = _LocalFiles()


def output_of(path: str) -> Output:
    """Return what writes a file, or a folder, of this path.

    Raises:
        MissingDependency: it is an address, and nothing that writes to stores is installed.
    """
    return far().output if is_address(path) else LOCAL


def output_path(path: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> str:
    """Return the absolute path, or the address, of a file or a folder that is to be written or read.

    The bucket of an address is mounted with the options; a slash at its end is left out.

    Raises:
        WrongType: the path is neither a text nor a path.
        InvalidArgument: options for a local path, or wrong ones; or no file can have such a name.
    """
    given = checked_path(path)
    given = (address_of_path(given) if isinstance(path, os.PathLike) else None) or given
    if is_address(given):
        return far().mount(given, storage_options).rstrip("/")
    if storage_options:
        message = (
            f"storage_options are for addresses of stores, and {given!r} is a local path: leave them out"
        )
        raise InvalidArgument(message)
    return os.path.abspath(os.path.expanduser(given))
