"""The contract of specs: texts such as ``hf:REPO:SPLIT``, which stand for files and often for more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from seekable.errors import InvalidArgument
from seekable.formats.registry import format_named

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from seekable.formats.registry import Format
    from seekable.formats.source_options import SourceOptions
    from seekable.index.surveyor import Finder
    from seekable.nodes.contract import Node
    from seekable.parallel.progress import ProgressHook
    from seekable.storage.listing import FoundFiles

__all__ = ["Spec", "checked_format"]


class Spec(ABC):
    """A parsed spec, immutable. A kind of specs that adds nothing has these methods as they are."""

    __slots__ = ()

    text: str
    """The text of the spec, as the user wrote it."""

    def check(self, options: SourceOptions) -> None:  # noqa: B027 - most specs refuse no option
        """Check options for the files, before these are listed.

        Raises:
            InvalidArgument: the spec and an option contradict each other.
        """

    def narrowed(self, options: SourceOptions, form: Format) -> SourceOptions:
        """Return the options for the files, with what the spec itself says of them.

        Args:
            options: the arguments of the user.
            form: the format of the files.

        Raises:
            InvalidArgument: the files have other columns.
        """
        return options

    @abstractmethod
    def files(
        self, format_name: str | None, *, index_dir: str | os.PathLike[str] | None
    ) -> tuple[tuple[FoundFiles, ...], Format]:
        """Return the files of the spec, and their format.

        Args:
            format_name: the format that the user named, if any.
            index_dir: the user's folder for indexes, if any; files on the Hub get placeholders there.

        Raises:
            DataNotFound: the file, the repository or the split does not exist.
            AccessDenied: this user may not read the folder, or the repository is private or gated.
            Unreachable: the Hub cannot be reached.
            InvalidArgument: no format has the name, or the spec is of another one.
            UnsupportedFormat: the files have several formats, or the file that lists them is damaged.
        """

    def prepare_index(  # noqa: B027 - most files are indexed where they lie
        self,
        found: Sequence[FoundFiles],
        form: Format,
        *,
        index_dir: str | os.PathLike[str] | None,
        progress: ProgressHook | None,
    ) -> None:
        """Fetch what the index of the files needs; nothing for files of this machine.

        Args:
            found: the files.
            form: their format.
            index_dir: the user's folder for indexes, if any.
            progress: is called with the progress.

        Raises:
            AccessDenied, DataNotFound, Unreachable, IndexStale: bytes cannot be fetched.
        """

    def scanner(self, form: Format) -> Finder:
        """Return the scanner of the files, with what the spec itself has of their records."""
        return form.scanner

    def kept(self, source: Node) -> Node:
        """Return the records of the spec, of all those of its files.

        Args:
            source: the source of the files.

        Raises:
            IndexStale: a file has another number of records than the spec's description says.
            KeyNotFound: an excluded record is not there.
        """
        return source


def checked_format(spec: Spec, own: str, format_name: str | None) -> Format:
    """Return the format of a spec whose files are always of one.

    Args:
        spec: the spec.
        own: the name of its format.
        format_name: the format that the user named, if any: this one, which may have options.

    Raises:
        InvalidArgument: the user named another format.
    """
    if format_name is not None and not f"{format_name}-".startswith(f"{own}-"):
        message = f"{spec.text!r} is {own}; leave format={format_name!r} out"
        raise InvalidArgument(message)
    return format_named(format_name or own)
