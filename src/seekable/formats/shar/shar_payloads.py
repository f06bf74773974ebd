"""The payloads of cuts: loaded, reduced to the part that the cut has, and encoded."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from seekable._optional import is_installed, optional
from seekable.errors import MissingDependency
from seekable.formats.shar.cut import DATA
from seekable.formats.shar.shar_audio import audio_form, decoded_audio, encoded_audio, num_samples

if TYPE_CHECKING:
    from collections.abc import Mapping

    import lilcom
    from numpy.typing import NDArray
else:
    lilcom = optional("lilcom", extra="audio")

__all__ = ["array_payload", "audio_payload", "is_decoded", "loaded"]

_TICK_POWER = -5
"""The precision of lilcom as Lhotse writes it: steps of 1/32."""

_NPY, _LILCOM = b"\x93NUMPY", b"L"


def loaded(cut: Any, field: str, manifest: Mapping[str, Any]) -> Any:
    """Return the payload of a field: encoded bytes, an array, or for audio samples and their rate.

    A dict has it under ``"data"``; Lhotse loads that of its objects, and of dicts without it.

    Raises:
        MissingDependency: a dict has no payload, and lhotse is not installed.
    """
    if isinstance(cut, dict):
        if DATA in manifest:
            return manifest[DATA]
        cut = _lhotse_cut(cut)
    if field == "recording":
        return Loaded(cut.load_audio().T, cut.sampling_rate, cut.recording)
    if field == "features":
        return cut.load_features()
    value = cut.load_custom(field)
    described = getattr(cut, field)
    is_audio = hasattr(described, "sources")
    return Loaded(value.T, described.sampling_rate, described) if is_audio else value


class Loaded:
    """Audio that Lhotse loaded: the samples of the cut, of shape (frames, channels)."""

    def __init__(self, samples: NDArray[Any], rate: int, recording: Any) -> None:
        self.samples = samples
        self.rate = rate
        self._recording = recording

    @property
    def form(self) -> str:
        """The form in which the recording lies in its own file."""
        return str(self._recording.source_format)


def _lhotse_cut(cut: dict[str, Any]) -> Any:
    if not is_installed("lhotse"):
        raise MissingDependency(
            "the cut has no payload ('data'), and lhotse, which loads it from elsewhere, is not installed: "
            "pip install lhotse"
        )
    from lhotse.serialization import deserialize_item

    return deserialize_item(_without_payloads(cut))  # it changes what it is given


def _without_payloads(value: Any) -> Any:
    """Return a copy of JSON without the payloads of manifests."""
    if isinstance(value, dict):
        return {key: _without_payloads(held) for key, held in value.items() if key != DATA}
    return [_without_payloads(held) for held in value] if isinstance(value, list) else value


def is_decoded(value: Any) -> TypeGuard[tuple[NDArray[Any], Any]]:
    """Return True for a tuple of samples and their rate."""
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], np.ndarray)  # noqa: PLR2004 - a pair


def audio_payload(
    value: Any,
    cut: Mapping[str, Any],
    manifest: Mapping[str, Any],
    placeholder: Mapping[str, Any],
    *,
    kind: str,
) -> bytes:
    """Return the audio of a cut, encoded.

    Bytes that have the kind of the field already, and no more than the samples of the cut, stay as they are.

    Args:
        value: what `loaded` returns.
        cut: the cut, as a dict.
        manifest: the manifest of the whole recording.
        placeholder: the manifest of the result.
        kind: the kind of the field, such as ``"flac"``.

    Raises:
        ValueError: the payload is not what the manifest says.
        TypeError: the payload is neither bytes nor samples and a rate.
    """
    if isinstance(value, Loaded):
        return encoded_audio(value.samples, value.rate, value.form if kind == "original" else kind)
    if manifest.get("transforms"):
        raise ValueError(
            "the recording has transforms, which Lhotse alone applies: give Cut objects of Lhotse"
        )
    form = kind
    if isinstance(value, bytes | bytearray | memoryview):
        payload = bytes(value)
        found = audio_form(payload)
        if kind in (found, "original") and _is_whole(cut, manifest, placeholder):
            return payload
        form = found if kind == "original" else kind
        samples, rate = decoded_audio(payload)
    elif is_decoded(value):
        if kind == "original":
            raise ValueError("a field of the kind 'original' takes encoded bytes: give another kind")
        samples, rate = value
    else:
        raise TypeError(
            f"audio is encoded bytes, or a tuple of samples and their rate (got {value!r:.60} of type "
            f"{type(value).__name__})"
        )
    return encoded_audio(_part(samples, rate, cut, manifest, placeholder), int(rate), form)


def _is_whole(cut: Mapping[str, Any], manifest: Mapping[str, Any], placeholder: Mapping[str, Any]) -> bool:
    same = ("num_samples", "channel_ids")
    return not cut.get("start") and all(manifest.get(key) == placeholder[key] for key in same)


def _part(
    samples: NDArray[Any],
    rate: float,
    cut: Mapping[str, Any],
    manifest: Mapping[str, Any],
    placeholder: Mapping[str, Any],
) -> NDArray[Any]:
    """Return the samples of a cut out of those of a recording."""
    if rate != placeholder["sampling_rate"]:
        raise ValueError(
            f"the payload has {rate} samples a second, and its manifest says {placeholder['sampling_rate']}"
        )
    wanted, there = placeholder["num_samples"], manifest.get("num_samples")
    if len(samples) != wanted:
        first = num_samples(cut.get("start") or 0, rate)
        if len(samples) != there or first + wanted > there:
            raise ValueError(
                f"the payload has {len(samples):,} samples, its manifest says {there:,}, and the cut has "
                f"{wanted:,} from {first:,} on: give the whole recording, or the part of the cut"
            )
        samples = samples[first : first + wanted]
    channels, known = placeholder["channel_ids"], manifest.get("channel_ids")
    if samples.ndim > 1 and samples.shape[1] != len(channels):
        if not known or samples.shape[1] != len(known):
            raise ValueError(f"the payload has {samples.shape[1]} channels, and its manifest says {known}")
        samples = samples[:, [known.index(channel) for channel in channels]]
    return samples


def array_payload(value: Any, manifest: Mapping[str, Any], *, kind: str) -> bytes:
    """Return an array, encoded; bytes that have the kind of the field already stay as they are.

    Args:
        value: what `loaded` returns.
        manifest: the manifest of the array.
        kind: ``"numpy"`` or ``"lilcom"``.

    Raises:
        ValueError: the array is not what the manifest says.
        TypeError: the payload is no array, or lilcom cannot hold its values.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        payload = bytes(value)
        if payload.startswith(_NPY if kind == "numpy" else _LILCOM):
            return payload
        value = _decoded_array(payload)
    if not isinstance(value, np.ndarray):
        raise TypeError(
            f"it is an array of numpy, or its bytes (got {value!r:.60} of type {type(value).__name__})"
        )
    if "shape" in manifest and DATA in manifest and list(value.shape) != list(manifest["shape"]):
        raise ValueError(f"the array has the shape {value.shape}, and its manifest says {manifest['shape']}")
    if kind == "lilcom":
        if value.dtype.kind != "f":
            raise TypeError(f"lilcom takes floating-point numbers (got dtype {value.dtype}): use 'numpy'")
        return bytes(lilcom.compress(value, tick_power=_TICK_POWER))
    file = io.BytesIO()
    np.save(file, value, allow_pickle=False)
    return file.getvalue()


def _decoded_array(payload: bytes) -> Any:
    if payload.startswith(_NPY):
        return np.load(io.BytesIO(payload), allow_pickle=False)
    if payload.startswith(_LILCOM):
        return lilcom.decompress(payload)
    raise ValueError(f"the payload begins with {payload[:8]!r}, which is neither npy nor lilcom")
