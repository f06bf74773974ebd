"""The functions of a pipeline, told apart by their code.

A fingerprint knows functions by name. That will do for a run that goes on, whose user changes a function
knowingly; files of which one half was made by another function look like all others for ever.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from seekable.errors import InvalidArgument
from seekable.formats.decoding import Decoder
from seekable.state.canonical import fingerprint_of
from seekable.state.code import code_digest
from seekable.state.functions import module_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seekable.nodes.contract import Node

__all__ = ["codes_of"]


def codes_of(dataset: Node) -> dict[str, str | None]:
    """Return, for each function of a pipeline by name, the digest of its code.

    Functions whose node has a ``version`` are left out: that stands for their code. Several of one name, as
    lambdas may be, have one digest. It is None where the code depends on what cannot be compared.

    Example:
        >>> import seekable as sk
        >>> list(codes_of(sk.from_sequence("ab").map(str.upper)))
        ['builtins.str.upper']
    """
    found: dict[str, list[str | None]] = {}
    for fn in _functions(dataset, set()):
        found.setdefault(_name(fn), []).append(_digest(fn))
    return {
        name: None if None in digests else fingerprint_of(digests) if len(digests) > 1 else digests[0]
        for name, digests in found.items()
    }


def _functions(node: Node, seen: set[int]) -> Iterator[Callable[..., Any]]:
    """Yield the functions of a node and of those below it, in their order; each node once."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if is_dataclass(node) and getattr(node, "version", None) is None:
        for field in fields(node):
            value = getattr(node, field.name)
            value = value.function if isinstance(value, Decoder) else value
            if callable(value):
                yield value
    for child in node.children:
        yield from _functions(child, seen)


def _digest(fn: Callable[..., Any]) -> str | None:
    try:
        return code_digest(fn)
    except InvalidArgument:
        return None


def _name(fn: Any) -> str:
    return f"{module_name(fn)}.{getattr(fn, '__qualname__', type(fn).__qualname__)}"
