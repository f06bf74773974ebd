"""Options of the form ``NAME=VALUE``: the fields of ``sk.formats.*``, ``sk.Index`` and ``sk.Storage``."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seekable.formats import Format

ELSEWHERE = frozenset({"executor", "filesystem", "jobs", "options", "publish"})
"""The fields that no text can give, or that have an option of their own."""

_STORAGE = "--storage"
_BOOLS = {"true": True, "false": False}
_NUMBER = re.compile(r"-?\d+")
_ESCAPED = re.compile(r"\\(?:t|x[0-9a-fA-F]{2})")
"""A character that is hard to type in a shell, as Python writes it."""


def pairs_in(option: str, texts: Sequence[str] | None) -> list[tuple[str, str]]:
    """Return the names and values of an option.

    Raises:
        InvalidArgument: a text is not ``NAME=VALUE``.

    Example:
        >>> pairs_in("--storage", ["region=eu-west-1", "endpoint=http://host:1/?a=b"])
        [('region', 'eu-west-1'), ('endpoint', 'http://host:1/?a=b')]
    """
    found = []
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            # A text may be a secret.
            raise InvalidArgument(f"{option} takes NAME=VALUE, and one has {'no name' if equals else 'no ='}")
        found.append((name, value))
    return found


def numbers_of(option: str, names: Sequence[str], texts: Sequence[str] | None) -> dict[str, float]:
    """Return numbers by name.

    Args:
        option: the option, for messages.
        names: the names that there are.
        texts: the values of the option.

    Raises:
        InvalidArgument: there is no such name, it is given twice, or its value is not a number.

    Example:
        >>> numbers_of("--network", ["link", "latency"], ["latency=0.1"])
        {'latency': 0.1}
    """
    found: dict[str, float] = {}
    for name, value in pairs_in(option, texts):
        if name not in names:
            raise InvalidArgument(f"{option} has no {name!r}: there are {', '.join(names)}")
        if name in found:
            raise InvalidArgument(f"{option} takes {name} once (got {value!r} besides)")
        try:
            found[name] = float(value)
        except ValueError:
            raise InvalidArgument(f"{option} {name}= takes a number (got {value!r})") from None
    return found


def field_values(option: str, kind: type[Any], pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the arguments of a frozen class of options, by name.

    Args:
        option: the option, for messages.
        kind: the class, which checks the values itself.
        pairs: names of its fields, with their values as texts.

    Raises:
        InvalidArgument: there is no such field, it is given twice, or its value is not of its type.
    """
    types = field_types(kind)
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name not in types:
            names = ", ".join(types) or "none"
            raise InvalidArgument(f"{option} has no {name!r} of sk.{_shown(kind)}: there are {names}")
        if "Sequence" in types[name]:
            found[name] = [*found.get(name, []), value]
        elif name in found:
            raise InvalidArgument(f"{option} takes {name} once (got {value!r} besides)")
        else:
            found[name] = _value(f"{option} {name}=", value, types[name])
    return found


def field_types(kind: type[Any]) -> dict[str, str]:
    """Return the types of the fields of a class, as they are written, without those that no text can give.

    Example:
        >>> from seekable.index.index_location import Index
        >>> list(field_types(Index))
        ['folder', 'sampled', 'most_bytes', 'allow']
    """
    return {each.name: str(each.type) for each in fields(kind) if each.init and each.name not in ELSEWHERE}


def _value(name: str, text: str, kind: str) -> Any:
    """Return the value that a text stands for, by the type of its field."""
    words = set(re.findall(r"\w+", kind))
    if words & {"bool", "False"} and text.lower() in _BOOLS:
        return _BOOLS[text.lower()]
    if words & {"int", "float"} and "str" not in words:
        try:
            return int(text) if _NUMBER.fullmatch(text) else _number(text, whole="float" not in words)
        except ValueError:
            raise InvalidArgument(f"{name} takes a number (got {text!r})") from None
    if "bool" in words:
        raise InvalidArgument(f"{name} takes true or false (got {text!r})")
    if _ESCAPED.fullmatch(text):
        return "\t" if text == "\\t" else chr(int(f"0{text[1:]}", 0))
    return text


def _number(text: str, *, whole: bool) -> float:
    """Return a number such as 1e9, for a count as an integer."""
    number = float(text)
    if whole and number != int(number):
        raise ValueError
    return int(number) if whole else number


def _shown(kind: type[Any]) -> str:
    return f"formats.{kind.__name__}" if "formats" in kind.__module__ else kind.__name__


def options_of_stores(texts: Sequence[str] | None, *, opens: bool) -> dict[str, str]:
    """Return the values of ``--storage`` that are options of stores.

    Args:
        texts: the values of ``--storage``.
        opens: False for a command that opens no data, and so has no `sk.Storage`.

    Raises:
        InvalidArgument: a name is given twice, or the command has no use for it.
    """
    found: dict[str, str] = {}
    for name, value in pairs_in(_STORAGE, texts):
        if name in found:
            raise InvalidArgument(f"{_STORAGE} takes {name} once (it is given twice)")
        if name not in _of_storage():
            found[name] = value
        elif not opens:
            raise InvalidArgument(f"{_STORAGE} {name}= is for commands that open data: leave it out")
    return found


def storage_values(texts: Sequence[str] | None) -> dict[str, Any]:
    """Return the values of ``--storage`` that are fields of ``sk.Storage``."""
    from seekable.storage.access import Storage

    own = _of_storage()
    return field_values(_STORAGE, Storage, [each for each in pairs_in(_STORAGE, texts) if each[0] in own])


def _of_storage() -> Mapping[str, str]:
    from seekable.storage.access import Storage

    return field_types(Storage)


def format_kind(name: str | None, pairs: Sequence[tuple[str, str]]) -> type[Format] | None:
    """Return the class of ``sk.formats`` that ``--set`` is about; None where several have such fields.

    Args:
        name: the value of ``--format``; None to find the class by the names of the fields.
        pairs: the names and values of ``--set``.

    Raises:
        InvalidArgument: no format has such a field.
        UnsupportedFormat: there is no format with that name.
    """
    from seekable.formats.table import card_named, format_class

    if name is not None:
        return format_class(card_named(name))
    kinds = format_kinds()
    fit = [kind for kind in kinds if {given for given, _ in pairs} <= field_types(kind).keys()]
    if fit:
        return fit[0] if len(fit) == 1 else None
    known = "; ".join(f"{kind.__name__}: {', '.join(field_types(kind))}" for kind in kinds)
    raise InvalidArgument(f"--set has no {' with '.join(each for each, _ in pairs)}: formats have {known}")


def format_kinds() -> list[type[Format]]:
    """Return the classes of ``sk.formats`` that have fields a text can give."""
    from seekable import formats

    kinds: list[type[Format]] = [
        getattr(formats, name) for name in ("Csv", "Jsonl", "Kaldi", "Tables", "Tar", "Text", "Tokens")
    ]
    return kinds
