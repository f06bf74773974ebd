"""A cut with the values of its fields: manifests with their payloads, and values of JSON lines."""

from __future__ import annotations

from typing import Any, Final

__all__ = [
    "DATA",
    "MANIFEST",
    "NO_DATA",
    "NO_MANIFEST",
    "OWN_KEYS",
    "held_by_cut",
    "set_field",
]

DATA: Final = "data"
"""The key of the payload in a manifest."""

MANIFEST: Final = "json"
"""The suffix of the member that has the manifest of a value."""

NO_DATA: Final = "nodata"
"""The suffix of the first member of a pair that stands for no value."""

NO_MANIFEST: Final = "nometa"
"""The suffix of the second member of a pair that stands for no value."""

CUSTOM: Final = "custom"
"""The key of the fields of a cut that have no key of their own."""

OWN_KEYS: Final = frozenset(
    {"id", "start", "duration", "channel", "supervisions", "features", "recording", CUSTOM}
)
"""The keys of a cut. Lhotse keeps every other field below ``custom``."""


def held_by_cut(field: str) -> str:
    """Return the key of a cut below which the value of a field is.

    Example:
        >>> held_by_cut("recording"), held_by_cut("target_recording")
        ('recording', 'custom')
    """
    return field if field in OWN_KEYS else CUSTOM


def set_field(cut: dict[str, Any], field: str, value: Any) -> None:
    """Put the value of a field into a cut, in place of what the cut has there.

    Raises:
        ValueError: the cut has custom fields that are no object.

    Example:
        >>> cut = {"id": "a", "recording": {"type": "shar"}}
        >>> set_field(cut, "recording", {"id": "r"})
        >>> set_field(cut, "lang", "de")
        >>> cut
        {'id': 'a', 'recording': {'id': 'r'}, 'custom': {'lang': 'de'}}
    """
    if field in OWN_KEYS:
        cut[field] = value
        return
    custom = cut.get(CUSTOM)
    if custom is None:
        cut[CUSTOM] = {field: value}
    elif isinstance(custom, dict):
        custom[field] = value
    else:
        message = f"the cut has custom fields that are no object: {custom!r:.80}"
        raise ValueError(message)
