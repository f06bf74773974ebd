"""Values that a node holds are written to a pipeline file here, and read again.

A class whose values JSON lacks has a method ``as_json(into)``, which returns JSON, and a class method
``from_json(value, given, where)``, which checks it and makes the value of it: ``into`` is a `Saving`, and
``given`` is a `Loading`. So pipeline files know no such class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seekable._typing import Int64s
    from seekable.index.fileset import FileSet
    from seekable.nodes.saved_rows import KeptRows

__all__ = ["Loading", "Saving"]


class Saving(Protocol):
    """The part of a pipeline file that values are written by."""

    def function(self, fn: Callable[..., Any]) -> dict[str, str]:
        """Return a function of the user as JSON, by the name that it has in the file."""

    def named(self, asked: Any) -> Any:
        """Return the name of something, or a function of the user, as JSON."""

    def rows(self, rows: KeptRows | Int64s) -> dict[str, Any]:
        """Return rows as JSON; many are written to a file of their own."""

    def folders(self, files: FileSet) -> list[dict[str, Any]]:
        """Return files as JSON, by folder."""

    def value(self, value: Any, where: str) -> Any:
        """Return a value of the user as JSON: a number, a text, a type of Arrow and so on."""


class Loading(Protocol):
    """The origin of values: a pipeline file, and what its reader was given.

    ``where`` is the place of a value in the file, for the messages of errors.
    """

    arguments: Mapping[str, Any]
    """The arguments of the node that were read before."""

    pipes: str
    """``"allow"`` if commands in scripts may be run."""

    allow: tuple[str, ...]
    """The folders and files that lists may name besides what lies below them."""

    def format(self, where: str) -> str:
        """Return the name of the format of the node.

        Raises:
            CorruptState: there is no such format.
        """

    def checked(self, value: Any, kind: Any, where: str) -> Any:
        """Return a value as a type; lists become the tuples that the type has.

        Raises:
            CorruptState: the value is of another type.
        """

    def function(self, value: Any, where: str) -> Callable[..., Any]:
        """Return the function of the user that ``Saving.function`` wrote."""

    def named(self, value: Any, where: str) -> Any:
        """Return the name or the function that ``Saving.named`` wrote."""

    def rows(self, value: Any, where: str) -> KeptRows:
        """Return the rows that ``Saving.rows`` wrote."""

    def beside(self, value: Any, name: str, where: str) -> list[FileSet]:
        """Return the files that ``Saving.folders`` wrote, each by itself, indexed as those of the node.

        Args:
            value: the JSON.
            name: the name that these files have in the description of the node.
            where: the place in the file.
        """

    def value(self, value: Any, where: str) -> Any:
        """Return the value that ``Saving.value`` wrote."""
