"""Formats of other packages: the entry points of the group ``seekable.formats``.

They are read only where no format of ours fits, because the metadata of all packages is searched for them.
The name of an entry point is the name of the format, and its value is the class, ``module:class``.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from seekable._log import LOG
from seekable.errors import MissingDependency, UnsupportedFormat, WrongType
from seekable.formats.contract import Format

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.metadata import EntryPoint

    from seekable.errors import SeekableError
    from seekable.formats.contract import Card

__all__ = ["GROUP", "card_named", "class_of", "forget", "formats", "installed", "node_homes", "remember"]

GROUP = "seekable.formats"
"""The group of entry points."""


_GIVEN: dict[str, type[Format]] = {}
"""The classes of values that users gave as ``format=``, by name, which sources of this process have."""


def remember(form: type[Format]) -> None:
    """Let a format be found by its name in this process, also without an entry point.

    Raises:
        UnsupportedFormat: another format was given under this name.
    """
    before = _GIVEN.setdefault(form.card.name, form)
    if before.card.home != form.card.home:
        message = (
            f"{form.card.home} and {before.card.home} are both formats of the name {form.card.name!r}, by "
            f"which files are indexed: give one of them another name"
        )
        raise UnsupportedFormat(message)
    _GIVEN[form.card.name] = form


def class_of(card: Card) -> type[Format] | None:
    """Return the class of a value that a user gave, by its card; None for other formats."""
    return _GIVEN.get(card.name)


def card_named(name: str) -> Card | None:
    """Return the card of a format of another package by its name in the index; None if there is none.

    Raises:
        MissingDependency: its class cannot be imported.
    """
    if given := _GIVEN.get(name) or _GIVEN.get(name.partition("-")[0]):
        return given.card
    points = _points()
    point = points.get(name) or points.get(name.partition("-")[0])
    return None if point is None else _loaded(point).card


def formats() -> list[type[Format]]:
    """Return the classes of all formats with entry points, in the order of their names.

    One that cannot be imported is logged and left out: a broken package must not keep others from their data.
    """
    found = []
    for _, form in installed():
        if isinstance(form, type):
            found.append(form)
        else:
            LOG.warning("%s", form)
    return found


def installed() -> Iterator[tuple[EntryPoint, type[Format] | SeekableError]]:
    """Yield each entry point and its class, or the error of a broken one, in the order of their names."""
    for _, point in sorted(_points().items()):
        try:
            yield point, _loaded(point)
        except (MissingDependency, UnsupportedFormat, WrongType) as error:
            yield point, error


def forget() -> None:
    """Forget the entry points, so that those of a package that was installed meanwhile are found."""
    _points.cache_clear()
    _loaded.cache_clear()


def node_homes() -> dict[str, str]:
    """Return by kind the classes of nodes that other packages bring with their formats, ``module:class``."""
    return {kind: home for form in (*formats(), *_GIVEN.values()) for kind, home in form.card.kinds}


@cache
def _points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


@cache
def _loaded(point: EntryPoint) -> type[Format]:
    """Return the class that an entry point names.

    Raises:
        MissingDependency: it cannot be imported.
        WrongType: it is not a format.
        UnsupportedFormat: its card has another name or another home.
    """
    package = "" if point.dist is None else f" of the package {point.dist.name!r}"
    try:
        found = point.load()
    except (ImportError, AttributeError) as error:
        message = (
            f"the format {point.name!r}{package} is {point.value!r}, which cannot be imported ({error}): "
            f"install that package again, or remove it"
        )
        raise MissingDependency(message) from error
    if not (isinstance(found, type) and issubclass(found, Format)):
        message = (
            f"the format {point.name!r}{package} is {point.value!r}, which is no seekable.formats.Format"
        )
        raise WrongType(message)
    if found.card.name != point.name or found.card.home != point.value:
        message = (
            f"the format {point.name!r}{package} is {point.value!r} by its entry point, and by its card "
            f"{found.card.name!r}, {found.card.home!r}: both must say the same"
        )
        raise UnsupportedFormat(message)
    return found
