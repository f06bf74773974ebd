"""The decoders of payloads that several formats find by name, so that none imports the subject of another.

A payload is the bytes of one member or object, such as an audio file in a tar file, a Shar or an archive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, final

from seekable._lazy import imported
from seekable.errors import InvalidArgument

if TYPE_CHECKING:
    from seekable.nodes.saving import Loading, Saving

__all__ = [
    "AskedDecoder",
    "NamedPayload",
    "PayloadDecoder",
    "kind_of_payload",
    "payload_decoder",
    "payload_kinds",
]

_HOMES = MappingProxyType({"audio": "seekable.formats.audio.decoder:audio"})
"""What makes the decoders of each kind, ``module:name``; it is imported when one is used."""

AskedDecoder = str | Callable[[bytes], Any] | None
"""A decoder as users name it for one field: a name, a function of bytes, or None for the default."""


class PayloadDecoder(Protocol):
    """Decodes payloads. A small value, picklable, and safe from threads."""

    kind: ClassVar[str]
    """The name by which formats find it."""

    ranged: ClassVar[bool]
    """True if a payload may be a slice of a file, of which the decoder reads what it needs."""

    @property
    def name(self) -> str:
        """The name with its arguments, which stands for the decoder in fingerprints."""

    def as_json(self, into: Saving) -> dict[str, Any]:
        """Return the kind and the arguments of `payload_decoder`, for pipeline files."""

    @classmethod
    def from_json(cls, value: Any, given: Loading, where: str) -> PayloadDecoder:
        """Return the decoder that `as_json` wrote.

        Raises:
            CorruptState: it wrote no such thing.
        """

    def __call__(self, payload: Any, **promised: Any) -> Any:
        """Return the value of a payload.

        Args:
            payload: its bytes, a binary file, or an object with ``size`` and ``range(start, stop)``.
            promised: what a manifest says of it.

        Raises:
            ValueError: it is damaged, or of another kind.
        """


@final
@dataclass(frozen=True, slots=True)
class NamedPayload:
    """The decoder of a kind without arguments, which is imported when it decodes."""

    kind: str

    def __call__(self, payload: Any, **promised: Any) -> Any:
        """Return the value of a payload; see `PayloadDecoder`."""
        return payload_decoder(self.kind)(payload, **promised)


def payload_kinds() -> tuple[str, ...]:
    """Return the names of all kinds of payloads that are decoded by name."""
    return tuple(_HOMES)


def kind_of_payload(decoder: object) -> str:
    """Return the kind of payloads that a decoder is for; empty for a function of the user and for names.

    Example:
        >>> kind_of_payload(NamedPayload("audio")), kind_of_payload(bytes)
        ('audio', '')
    """
    kind = getattr(decoder, "kind", "") if callable(decoder) else ""
    return kind if kind in _HOMES else ""


@lru_cache(maxsize=64, typed=True)
def payload_decoder(kind: str, **arguments: Any) -> PayloadDecoder:
    """Return the decoder of a kind of payloads.

    Args:
        kind: one of `payload_kinds`.
        arguments: what the decoder takes.

    Raises:
        InvalidArgument: there is no such kind, or an argument breaks a rule.
        TypeError: the decoder takes no such argument.

    Example:
        >>> payload_decoder("audio", offset=1.5).name
        'audio(offset=1.5)'
    """
    if kind not in _HOMES:
        message = f"the kind of a payload must be one of {', '.join(map(repr, _HOMES))} (got {kind!r})"
        raise InvalidArgument(message)
    made: PayloadDecoder = imported(_HOMES[kind])(**arguments)
    return made
