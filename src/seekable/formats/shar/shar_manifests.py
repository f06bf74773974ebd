"""The manifests of payloads in a Shar folder, as Lhotse writes them, in tar files and in cuts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from seekable.formats.shar.cut import DATA
from seekable.formats.shar.shar_audio import num_samples

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["array_placeholder", "json_line", "recording_placeholder"]

_STORED = {"storage_type": "shar", "storage_path": "", "storage_key": ""}

_ORDER = (
    ("id", "sources", "sampling_rate", "num_samples", "duration", "channel_ids"),
    ("type", "num_frames", "num_features", "frame_shift", "sampling_rate", "start", "duration", *_STORED),
    ("array", "temporal_dim", "frame_shift", "start"),
    (*_STORED, "shape"),
)
"""The first keys of the manifests of recordings, features and arrays, in the order of Lhotse."""


def json_line(value: Any) -> bytes:
    r"""Return a line of JSON as Lhotse writes it into files of JSON lines.

    Raises:
        TypeError, ValueError: JSON cannot hold the value.

    Example:
        >>> json_line({"cut_id": "ä"})
        b'{"cut_id": "\xc3\xa4"}\n'
    """
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


def recording_placeholder(cut: Mapping[str, Any], field: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of a recording that has the samples of the cut alone, and lies in a Shar folder.

    Args:
        cut: the cut, as a dict.
        field: the name of the field.
        manifest: the manifest of the whole recording; a payload under ``"data"`` is left out.

    Raises:
        ValueError: the manifest is not that of a recording.
    """
    channels = _channels(cut, field, manifest)
    rate = manifest.get("sampling_rate")
    if "sources" not in manifest or rate is None:
        raise ValueError(
            f"its manifest has the keys {', '.join(map(repr, manifest))}, and that of a recording has "
            f"'sources', 'sampling_rate', 'num_samples', 'duration' and 'channel_ids'"
        )
    changed = {
        "sources": [{"type": "shar", "channels": channels, "source": ""}],
        "num_samples": num_samples(cut["duration"], rate),
        "duration": cut["duration"],
        "channel_ids": channels,
    }
    kept = {key: value for key, value in manifest.items() if key not in (DATA, "transforms")}
    return _in_order({**kept, **changed}, 0)


def _channels(cut: Mapping[str, Any], field: str, manifest: Mapping[str, Any]) -> Any:
    if field == "recording":
        channel = cut["channel"]
        return channel if isinstance(channel, list) else [channel]
    selected = (cut.get("custom") or {}).get(f"{field}_channel_selector")
    if selected is not None:
        return selected
    known = manifest.get("channel_ids")
    if known is not None:
        return known
    return sorted(channel for source in manifest.get("sources", ()) for channel in source["channels"])


def array_placeholder(cut: Mapping[str, Any], field: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of features, or of an array, that lies in a Shar folder.

    Args:
        cut: the cut, as a dict.
        field: the name of the field.
        manifest: the manifest of the array; of an array of numpy under ``"data"`` nothing else is needed.

    Raises:
        ValueError: the manifest is not that of an array, or that of the features is not one of features.
    """
    kept = {key: value for key, value in manifest.items() if key != DATA}
    if "num_features" in kept:
        return _in_order({**kept, "start": 0, "duration": cut["duration"], **_STORED}, 1)
    if field == "features":
        if not kept and isinstance(manifest[DATA], np.ndarray):
            return _of_features(cut, manifest[DATA])
        raise ValueError(
            f"its manifest has the keys {_listed(kept)}, and that of features has 'type', 'num_frames', "
            f"'num_features', 'frame_shift' and 'sampling_rate'"
        )
    if isinstance(kept.get("array"), dict):
        return _in_order({**kept, "start": 0, "array": _in_order({**kept["array"], **_STORED}, 3)}, 2)
    if not kept and isinstance(manifest[DATA], np.ndarray):
        return {**_STORED, "shape": list(manifest[DATA].shape)}
    if "shape" in kept:
        return _in_order({**kept, **_STORED}, 3)
    raise ValueError(
        f"its manifest has the keys {_listed(kept)}, and that of an array has 'shape', 'array' or "
        f"'num_features'"
    )


def _of_features(cut: Mapping[str, Any], values: NDArray[Any]) -> dict[str, Any]:
    """Return the manifest of features that span a cut evenly.

    Raises:
        ValueError: the array is no table of frames, or the cut has no recording, whose rate is needed.
    """
    rate = (cut.get("recording") or {}).get("sampling_rate")
    if values.ndim != 2 or not len(values) or rate is None:  # noqa: PLR2004 - frames and features
        raise ValueError(
            f"features of shape {values.shape} need a manifest, with 'num_frames', 'num_features', "
            f"'frame_shift', 'sampling_rate' and 'type': it follows from a recording and a table of frames"
        )
    return {
        "type": "array",
        "num_frames": values.shape[0],
        "num_features": values.shape[1],
        "frame_shift": cut["duration"] / len(values),
        "sampling_rate": rate,
        "start": 0,
        "duration": cut["duration"],
        **_STORED,
        "recording_id": cut["recording"].get("id", cut["id"]),
        "channels": cut["channel"],
    }


def _listed(manifest: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, manifest)) or "none"


def _in_order(manifest: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return a manifest with the keys of ``_ORDER[number]`` in front."""
    first = {key: manifest[key] for key in _ORDER[number] if key in manifest}
    return {**first, **manifest}
