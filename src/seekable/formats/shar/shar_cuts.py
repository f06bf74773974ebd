"""The encoder of cuts for a Shar folder: payloads, their manifests, and the cut with placeholders.

A cut is a dict, the JSON of Lhotse's ``to_dict``, with each payload under ``"data"`` of its manifest; or an
object of Lhotse, which becomes such a dict.
"""

from __future__ import annotations

import io
import json
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any, TypeGuard

import msgspec
import numpy as np

from seekable._optional import is_installed, optional
from seekable.errors import MissingDependency
from seekable.formats.audio.wave_file import wave_file
from seekable.formats.shar.shar_layout import ARRAYS, AUDIO, DATA

if TYPE_CHECKING:
    from collections.abc import Mapping

    import lilcom
    import soundfile
    from numpy.typing import NDArray

    from seekable.formats.shar.shar_layout import SharLayout
else:
    lilcom = optional("lilcom", extra="audio")
    soundfile = optional("soundfile", extra="audio")

__all__ = ["EncodedCut", "UnwritableCut", "audio_form", "encoded_audio", "encoded_cut", "num_samples"]

_KEYS = ("id", "start", "duration", "channel", "supervisions", "features", "recording", "custom", "type")

_MANIFESTS = ({"sources", "sampling_rate"}, {"storage_type", "shape"}, {"array", "temporal_dim"})
"""What the manifests of recordings and of arrays have."""

Entry = list[tuple[str, bytes]]


class EncodedCut(msgspec.Struct, frozen=True):
    """One cut, ready to be written."""

    id: str

    entries: list[list[tuple[str, bytes]]]
    """For each file of ``SharLayout.contents``, the names and contents of two members, or a nameless line."""

    unused: tuple[str, ...] = ()
    """The fields with data that is not written."""


class UnwritableCut(Exception):
    """A cut that cannot be written; the message names it, and the field."""


def encoded_cut(cut: Any, layout: SharLayout) -> EncodedCut:
    """Return a cut, ready to be written.

    Args:
        cut: a dict, or an object of Lhotse.
        layout: the fields to write.

    Raises:
        UnwritableCut: the cut has no good id, a payload does not fit to its manifest or cannot be encoded, or
            something is not JSON.
        MissingDependency: soundfile, lilcom or lhotse is not installed, and a payload needs it.
    """
    record = _record(cut)
    name = record["id"]
    entries: list[Entry] = []
    for field, kind in layout.fields:
        try:
            entry, record = _entry(cut, record, field, kind)
        except MissingDependency:
            raise
        except Exception as error:
            raise UnwritableCut(f"the field {field!r} of cut {name!r}: {error}") from error
        entries.append(entry)
    if layout.include_cuts:
        entries.insert(0, [("", _cut_line(record, layout))])
    return EncodedCut(name, entries, _unused_fields(record, {field for field, _ in layout.fields}))


def _unused_fields(record: dict[str, Any], written: set[str]) -> tuple[str, ...]:
    """Return the names of a cut's manifests (audio, features, arrays) that are not written."""
    own = [field for field in ("recording", "features") if isinstance(record.get(field), dict)]
    custom = [
        field
        for field, value in (record.get("custom") or {}).items()
        if isinstance(value, dict) and any(marks <= value.keys() for marks in _MANIFESTS)
    ]
    return tuple(field for field in (*own, *custom) if field not in written)


def _record(cut: Any) -> dict[str, Any]:
    """Return a cut as a dict of its own, with all that Lhotse needs."""
    record = dict(cut) if isinstance(cut, dict) else _of_lhotse(cut)
    name = record.get("id")
    if not isinstance(name, str) or not name:
        raise UnwritableCut(f"a cut has an id, a str that is not empty (got {name!r})")
    # Readers take a member's name without its last suffix, as a path, and compare it with the id.
    if "\0" in name or any(step in ("", ".", "..") for step in name.split("/")):
        raise UnwritableCut(
            f"cut {name!r}: the id names the members of tar files, so it has no NUL, and no step is empty, "
            f"'.' or '..'"
        )
    kind = record.get("type")
    if kind is None:
        return _completed(record)
    if kind not in ("MonoCut", "MultiCut"):
        raise UnwritableCut(
            f"cut {name!r} is a {kind}, and Shar holds MonoCut and MultiCut: make its audio one recording"
        )
    return record


def _of_lhotse(cut: Any) -> dict[str, Any]:
    if not hasattr(cut, "to_dict") or not hasattr(cut, "load_audio"):
        raise UnwritableCut(
            f"a cut is a dict or a Cut of Lhotse (got {cut!r:.80} of type {type(cut).__name__})"
        )
    record: dict[str, Any] = cut.to_dict()
    return record


def _completed(record: dict[str, Any]) -> dict[str, Any]:
    """Return a cut with what follows from its decoded audio: times, channels and manifest."""
    recording = record.get("recording")
    found: dict[str, Any] = {"start": 0, "supervisions": []}
    if isinstance(recording, dict) and isinstance(recording.get(DATA), tuple):
        samples, rate = _checked_audio(record["id"], recording[DATA])
        channels = list(range(samples.shape[1])) if samples.ndim > 1 else [0]
        recording = {
            "id": record["id"],
            "sources": [],
            "sampling_rate": int(rate),
            "num_samples": len(samples),
            "duration": len(samples) / rate,
            "channel_ids": channels,
            **recording,
        }
        found["duration"] = recording["duration"]
        found["channel"] = channels if len(channels) > 1 else 0
        found["type"] = "MultiCut" if len(channels) > 1 else "MonoCut"
        found["recording"] = recording
    whole = {**found, **record}
    if "recording" in found:
        whole["recording"] = found["recording"]
    if lacking := [key for key in ("duration", "channel") if key not in whole]:
        raise UnwritableCut(
            f"cut {record['id']!r} lacks {' and '.join(map(repr, lacking))}: give a cut of Lhotse as a dict, "
            f'or audio as {{"id": ..., "recording": {{"data": (samples, rate)}}}}'
        )
    whole.setdefault("type", "MultiCut" if isinstance(whole["channel"], list) else "MonoCut")
    known = {key: whole[key] for key in _KEYS if key in whole and key != "type"}
    others = {key: value for key, value in whole.items() if key not in _KEYS}
    return {**known, **others, "type": whole["type"]}


def _checked_audio(name: str, value: tuple[Any, ...]) -> tuple[NDArray[Any], int]:
    """Return the samples and the rate of decoded audio."""
    match value:
        case (np.ndarray(ndim=1 | 2) as samples, int() | float() | np.number() as rate):
            if rate > 0 and float(rate).is_integer():
                return samples, int(rate)
    raise UnwritableCut(
        f"the recording of cut {name!r}: decoded audio is a tuple of an array of samples, of shape (frames,) "
        f"or (frames, channels), and its sampling rate, a whole number of 1 or more (got {value!r:.80})"
    )


def _entry(cut: Any, record: dict[str, Any], field: str, kind: str) -> tuple[Entry, dict[str, Any]]:
    """Return the entry of one field, and the cut with a placeholder in its place."""
    name = record["id"]
    held = record if field in _KEYS else record.get("custom") or {}
    if kind == "jsonl":
        line = {"cut_id": name, field: held[field]} if field in held else {"cut_id": name}
        return [("", _json_line(line))], record
    manifest = held.get(field)
    if manifest is None:
        return [(f"{name}.nodata", b""), (f"{name}.nometa", b"")], record
    if not isinstance(manifest, dict):
        manifest = {DATA: manifest}
    if kind in AUDIO:
        placeholder = _recording_placeholder(record, field, manifest)
        payload = _audio_payload(_payload_of(cut, field, manifest), record, manifest, placeholder, kind=kind)
        suffix = kind
    else:
        placeholder = _array_placeholder(record, field, manifest)
        payload = _array_payload(_payload_of(cut, field, manifest), manifest, kind=kind)
        suffix = ARRAYS[kind]
    described = json.dumps(placeholder).encode() + b"\n"
    members = [(f"{name}.{suffix}", payload), (f"{name}.json", described)]
    return members, _with_placeholder(record, field, placeholder)


def _with_placeholder(record: dict[str, Any], field: str, placeholder: dict[str, Any]) -> dict[str, Any]:
    if field in _KEYS:
        return {**record, field: placeholder}
    custom = {**record["custom"], field: placeholder}
    if "sources" in placeholder:
        custom.pop(f"{field}_channel_selector", None)
    return {**record, "custom": custom}


def _cut_line(record: dict[str, Any], layout: SharLayout) -> bytes:
    """Return the line of a cut: it begins at 0, as its payloads have no more than the cut."""
    names = {field for field, _ in layout.fields}
    for held in (record, record.get("custom") or {}):
        for field, value in held.items():
            if field not in names and isinstance(value, dict) and DATA in value:
                raise UnwritableCut(
                    f"cut {record['id']!r} holds the payload of {field!r}, which fields= does not name: add "
                    f"it, or leave {field!r} out of the cut"
                )
    try:
        return _json_line({**record, "start": 0})
    except (TypeError, ValueError) as error:
        raise UnwritableCut(f"cut {record['id']!r} cannot be JSON: {error}") from None


_STORED = {"storage_type": "shar", "storage_path": "", "storage_key": ""}

_ORDER = (
    ("id", "sources", "sampling_rate", "num_samples", "duration", "channel_ids"),
    ("type", "num_frames", "num_features", "frame_shift", "sampling_rate", "start", "duration", *_STORED),
    ("array", "temporal_dim", "frame_shift", "start"),
    (*_STORED, "shape"),
)
"""The first keys of the manifests of recordings, features and arrays, in the order of Lhotse."""


def _json_line(value: Any) -> bytes:
    r"""Return a line of JSON as Lhotse writes it into files of JSON lines.

    Raises:
        TypeError, ValueError: JSON cannot hold the value.

    Example:
        >>> _json_line({"cut_id": "ä"})
        b'{"cut_id": "\xc3\xa4"}\n'
    """
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


def _recording_placeholder(cut: Mapping[str, Any], field: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
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


def _array_placeholder(cut: Mapping[str, Any], field: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
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
        ValueError: the array is not a table of frames, or the cut has no recording, whose rate is needed.
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


_TICK_POWER = -5
"""The precision of lilcom as Lhotse writes it: steps of 1/32."""

_NPY, _LILCOM = b"\x93NUMPY", b"L"


def _payload_of(cut: Any, field: str, manifest: Mapping[str, Any]) -> Any:
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
        return _LoadedAudio(cut.load_audio().T, cut.sampling_rate, cut.recording)
    if field == "features":
        return cut.load_features()
    value = cut.load_custom(field)
    described = getattr(cut, field)
    is_audio = hasattr(described, "sources")
    return _LoadedAudio(value.T, described.sampling_rate, described) if is_audio else value


class _LoadedAudio:
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
            "pip install 'seekable[lhotse]'"
        )
    from lhotse.serialization import deserialize_item

    return deserialize_item(_without_payloads(cut))  # it changes what it is given


def _without_payloads(value: Any) -> Any:
    """Return a copy of JSON without the payloads of manifests."""
    if isinstance(value, dict):
        return {key: _without_payloads(held) for key, held in value.items() if key != DATA}
    return [_without_payloads(held) for held in value] if isinstance(value, list) else value


def _is_decoded(value: Any) -> TypeGuard[tuple[NDArray[Any], Any]]:
    """Return True for a tuple of samples and their rate."""
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], np.ndarray)  # noqa: PLR2004 - a pair


def _audio_payload(
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
        value: what `_payload_of` returns.
        cut: the cut, as a dict.
        manifest: the manifest of the whole recording.
        placeholder: the manifest of the result.
        kind: the kind of the field, such as ``"flac"``.

    Raises:
        ValueError: the payload is not what the manifest says.
        TypeError: the payload is neither bytes nor samples and a rate.
    """
    if isinstance(value, _LoadedAudio):
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
        samples, rate = _decoded_audio(payload)
    elif _is_decoded(value):
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
    """Cut the samples of a cut out of a recording."""
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


def _array_payload(value: Any, manifest: Mapping[str, Any], *, kind: str) -> bytes:
    """Return an array, encoded; bytes that have the kind of the field already stay as they are.

    Args:
        value: what `_payload_of` returns.
        manifest: the manifest of the array.
        kind: ``"numpy"`` or ``"lilcom"``.

    Raises:
        ValueError: the array is not what the manifest says.
        TypeError: the payload is not an array, or lilcom cannot hold its values.
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


_SERIAL, _CHECKSUM, _SEGMENTS, _OGG_HEADER = 14, 22, 26, 27
"""Offsets in a page of Ogg, and the bytes of its header without the segment table."""

_MPEG_SYNC = 0xE0


def num_samples(seconds: float, rate: float) -> int:
    """Return the number of samples of a time, rounded as Lhotse rounds: halves away from zero.

    Example:
        >>> num_samples(0.50003125, 16_000), num_samples(1.5, 8_000)
        (8001, 12000)
    """
    return int(Decimal(round(seconds * rate, ndigits=8)).quantize(Decimal(0), rounding=ROUND_HALF_UP))


def audio_form(payload: bytes) -> str:
    """Return the form of encoded audio by its first bytes: ``wav``, ``flac``, ``mp3``, ``opus`` or ``ogg``.

    Raises:
        ValueError: the bytes are none of these.

    Example:
        >>> audio_form(b"fLaC....")
        'flac'
    """
    if payload[:4] in (b"RIFF", b"RF64", b"RIFX") and payload[8:12] == b"WAVE":
        return "wav"
    if payload[:4] == b"fLaC":
        return "flac"
    if payload[:4] == b"OggS":
        return "opus" if b"OpusHead" in payload[:64] else "ogg"
    if payload[:3] == b"ID3" or (payload[:1] == b"\xff" and payload[1:2] >= bytes([_MPEG_SYNC])):
        return "mp3"
    raise ValueError(f"the payload begins with {payload[:12]!r}, which is no audio that is known")


def _decoded_audio(payload: bytes) -> tuple[NDArray[np.float32], int]:
    """Return the samples of encoded audio, of shape (frames, channels), and the sampling rate."""
    samples, rate = soundfile.read(io.BytesIO(payload), dtype="float32", always_2d=True)
    return samples, rate


def encoded_audio(samples: NDArray[Any], rate: int, form: str) -> bytes:
    """Return samples as a file, with the bytes of soundfile: 16 bits in ``wav`` and ``flac``.

    The bytes depend on the samples alone: streams of Ogg, whose numbers are random else, have number 0.

    Args:
        samples: an array of shape (frames,) or (frames, channels), of floats in -1 to 1 or of integers.
        rate: the sampling rate.
        form: ``wav``, ``flac``, ``mp3``, ``opus`` or another name of soundfile.

    Raises:
        MissingDependency: soundfile is not installed; ``wav`` of float32 or int16 needs none.
    """
    if form == "wav" and samples.dtype in (np.float32, np.int16):
        return _wav(samples, rate)
    file = io.BytesIO()
    if form == "opus":
        soundfile.write(file, samples, rate, format="ogg", subtype="opus")
    else:
        soundfile.write(file, samples, rate, format=form)
    payload = file.getvalue()
    return _with_serial_0(payload) if payload[:4] == b"OggS" else payload


def _wav(samples: NDArray[Any], rate: int) -> bytes:
    """Return samples as a WAV file of 16 bits, clipped and rounded as soundfile does it."""
    if samples.dtype == np.float32:
        scaled = np.rint(samples * np.float32(1 << 31)).astype(np.int64)
        samples = (scaled.clip(-(1 << 31), (1 << 31) - 1) >> 16).astype(np.int16)
    return wave_file(samples, rate)


def _with_serial_0(payload: bytes) -> bytes:
    """Return a file of Ogg whose stream has the number 0."""
    pages = bytearray(payload)
    start = 0
    while start < len(pages):
        table = start + _OGG_HEADER
        end = table + pages[start + _SEGMENTS]
        end += sum(pages[table:end])
        pages[start + _SERIAL : start + _SERIAL + 4] = bytes(4)
        pages[start + _CHECKSUM : start + _CHECKSUM + 4] = bytes(4)
        checksum = _ogg_checksum(pages[start:end])
        pages[start + _CHECKSUM : start + _CHECKSUM + 4] = checksum.to_bytes(4, "little")
        start = end
    return bytes(pages)


def _ogg_checksum(page: bytes | bytearray) -> int:
    checksum = 0
    for byte in page:
        checksum = (checksum << 8) & 0xFFFFFFFF ^ _CHECKSUMS[checksum >> 24 ^ byte]
    return checksum


def _checksums() -> list[int]:
    """Return the checksum of each byte: CRC-32 with the polynomial 0x04C11DB7, not reflected."""
    table = []
    for byte in range(256):
        value = byte << 24
        for _ in range(8):
            value = (value << 1) ^ (0x04C11DB7 if value >> 31 else 0)
            value &= 0xFFFFFFFF
        table.append(value)
    return table


_CHECKSUMS = _checksums()
