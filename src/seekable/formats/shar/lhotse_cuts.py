"""Records of Shar as cuts of Lhotse, and back: payloads become sources in memory.

A record has the dicts of its cut's manifests. Beside the numbers of a recording, an array or features it may
have the payload, under ``"data"``.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable._optional import optional
from seekable.errors import WrongType
from seekable.formats.audio.wave_file import wave_file
from seekable.formats.shar.shar_layout import OWN_KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping

    import lhotse.cut.set as lhotse_cuts
    import lhotse.features.io as lhotse_readers
else:
    lhotse_cuts = optional("lhotse.cut.set", extra="lhotse")
    lhotse_readers = optional("lhotse.features.io", extra="lhotse")

__all__ = ["cut_from_record", "cut_to_record", "is_cut_record"]

_KINDS = frozenset({"MonoCut", "MultiCut", "MixedCut", "PaddingCut", "Cut"})
"""The values of ``"type"`` that make a dict a cut's; "Cut" is what Lhotse before 0.8 wrote."""

_OF_A_CUT = OWN_KEYS | {"type"}
"""The names of a MonoCut's and a MultiCut's own fields; any other is one of ``custom``."""

_NESTED = (dict, list)

_NUMPY = b"\x93NUMPY"


def is_cut_record(record: object) -> bool:
    """Return True for the dict of a cut, as a line of a manifest has it.

    Example:
        >>> is_cut_record({"type": "MonoCut", "id": "a"}), is_cut_record({"id": "a"})
        (True, False)
    """
    return isinstance(record, dict) and record.get("type") in _KINDS


def cut_from_record(record: Mapping[str, Any]) -> Any:
    """Return the cut of a record; the record stays as it is.

    A payload may be the bytes of a file, or an array: of audio a pair ``(samples, rate)``, with samples of
    shape ``(frames,)`` or ``(frames, channels)``. It becomes a source in memory, as in Lhotse's Shar readers.
    Names that a cut does not have become its custom fields, as there.

    Args:
        record: a record of ``sk.open("shar:DIR")``, or the dict of a line of a manifest of cuts.

    Returns:
        A ``MonoCut``, ``MultiCut``, ``MixedCut`` or ``PaddingCut``.

    Raises:
        WrongType: the record is not a cut's dict, or a payload is of another type.
        MissingDependency: Lhotse is not installed.
    """
    if not is_cut_record(record):
        found = f"keys {list(record)[:8]}" if isinstance(record, dict) else f"a {type(record).__name__}"
        message = (
            f"a cut's record is a dict with a 'type', one of {sorted(_KINDS)} (got {found}): map the records "
            f"to cuts with ds.map(fn); of tables and Shar, keep the column 'type'"
        )
        raise WrongType(message)
    copied: dict[str, Any] = _with_sources(record)
    if copied["type"] in {"MonoCut", "MultiCut", "Cut"}:
        custom = {name: copied.pop(name) for name in [*copied] if name not in _OF_A_CUT}
        if custom:
            copied["custom"] = {**(copied.get("custom") or {}), **custom}
    return lhotse_cuts.deserialize_cut(copied)


def cut_to_record(cut: Any) -> dict[str, Any]:
    """Return the record of a cut: what ``cut_from_record`` makes the cut of.

    Sources in memory become ``"data"``, bytes beside the numbers of their manifest. Other sources stay what
    they are, paths for example: ``cut.move_audio_to_memory()`` reads these.

    Raises:
        WrongType: ``cut`` is not a cut.
    """
    if not hasattr(cut, "to_dict") or not is_cut_record(record := cut.to_dict()):
        message = f"cut_to_record() takes a cut of Lhotse (got {type(cut).__name__})"
        raise WrongType(message)
    plain: dict[str, Any] = _with_data(record)
    return plain


def _with_sources(value: Any) -> Any:
    """Return a copy of a JSON value in which each payload is a source in memory."""
    if isinstance(value, list):
        return [_with_sources(each) for each in value]
    if not isinstance(value, dict):
        return value
    copied = {
        name: _with_sources(each) if type(each) in _NESTED else each
        for name, each in value.items()
        if name != "data"
    }
    data = value.get("data")
    if data is None:
        if "data" in value and not _has_payload(copied):
            copied["data"] = None
    elif "sources" in copied:
        [source] = copied["sources"]
        copied["sources"] = [{**source, "type": "memory", "source": _audio_file(data, copied)}]
    elif "storage_type" in copied:
        copied |= _array_in_memory(data, copied)
    elif "temporal_dim" in copied:
        copied["array"] |= _array_in_memory(data, copied)
    else:
        copied["data"] = _with_sources(data)
    return copied


def _has_payload(manifest: Mapping[str, Any]) -> bool:
    return not manifest.keys().isdisjoint({"sources", "storage_type", "temporal_dim"})


def _array_in_memory(data: Any, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the three fields with which an array's manifest holds the array itself.

    Raises:
        WrongType: ``data`` is neither bytes nor an array.
    """
    if isinstance(data, np.ndarray):
        data = _numpy_file(data)
    elif not isinstance(data, bytes):
        raise _no_payload(data, manifest, "the bytes of a .npy or .llc file, or an array")
    kind = "memory_npy" if data.startswith(_NUMPY) else "memory_lilcom"
    return {"storage_type": kind, "storage_path": "", "storage_key": data}


def _audio_file(data: Any, manifest: Mapping[str, Any]) -> bytes:
    """Return the bytes of an audio file; decoded audio becomes a WAV file of 32-bit floats.

    Raises:
        WrongType: ``data`` is neither bytes nor samples and a rate.
    """
    if isinstance(data, bytes):
        return data
    match data:
        case (np.ndarray() as samples, rate):
            return wave_file(samples.astype(np.float32, copy=False), int(rate))
    raise _no_payload(data, manifest, "the bytes of an audio file, or a pair of samples and their rate")


def _no_payload(data: Any, manifest: Mapping[str, Any], expected: str) -> WrongType:
    name = manifest.get("id") or manifest.get("type") or "an array"
    return WrongType(f"the payload of {name} must be {expected} (got {type(data).__name__})")


def _numpy_file(array: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def _with_data(value: Any) -> Any:
    """Return a copy of a cut's dict in which sources in memory are payloads."""
    if isinstance(value, list):
        return [_with_data(each) for each in value]
    if not isinstance(value, dict):
        # A custom field may hold an object of Lhotse, whose dict asdict() does not make.
        return _with_data(value.to_dict()) if hasattr(value, "to_dict") else value
    match value:
        case {"sources": [{"type": "memory", "source": bytes(data)} as source]}:
            placeholder = {**source, "type": "shar", "source": ""}
            return {**_without(value, "sources"), "sources": [placeholder], "data": data}
        case {"array": {"storage_key": bytes()} as array, "temporal_dim": _}:
            return {**_without(value, "array"), "array": _placeholder(array), "data": _array_file(array)}
        case {"storage_key": bytes()}:
            return {**_placeholder(value), "data": _array_file(value)}
    return {name: _with_data(each) for name, each in value.items()}


def _without(value: Mapping[str, Any], left_out: str) -> dict[str, Any]:
    return {name: _with_data(each) for name, each in value.items() if name != left_out}


def _placeholder(array: Mapping[str, Any]) -> dict[str, Any]:
    return {**array, "storage_type": "shar", "storage_path": "", "storage_key": ""}


def _array_file(array: Mapping[str, Any]) -> bytes:
    """Return the payload of an array in memory, as a file has it."""
    kind, data = array["storage_type"], array["storage_key"]
    if kind in {"memory_npy", "memory_lilcom"}:
        file: bytes = data
        return file
    return _numpy_file(lhotse_readers.get_reader(kind)(None).read(data))
