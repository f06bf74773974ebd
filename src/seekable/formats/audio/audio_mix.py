"""Audio laid over other audio at a given ratio of their energies, as Lhotse's ``LazyCutMixer`` does it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from seekable._arguments import checked_flag
from seekable.errors import InvalidArgument, WrongType
from seekable.formats.audio.audio_bytes import frames_of

__all__ = ["audio_mix"]

_Samples = NDArray[np.float32]


def audio_mix(
    a: Any,
    b: Any,
    *,
    snr: float | tuple[float, float] | None = None,
    offset: float = 0.0,
    padding: bool = False,
    random_part: bool = False,
    rng: np.random.Generator | None = None,
) -> Any:
    """Return ``a`` with ``b`` laid over it: speech with noise, say.

    Audio is an array of floats of shape (frames,) or (frames, channels), or a pair of such an array and its
    sampling rate, as `sk.audio` decodes it. Audio of one channel is added to each channel of the other.

    The arithmetic is that of Lhotse's ``LazyCutMixer``. The energy of audio is the mean of its squared
    samples, and ``b`` is scaled so that the ratio of the energies of ``a`` and ``b`` is ``snr``. If one of
    them is silent, nothing is scaled.

    Args:
        a: the audio that stays as it is.
        b: the audio that is laid over it; or a list or an iterator of several, which follow one another until
            they reach the end of ``a``, each scaled by itself. Of an iterator no more is taken than needed.
        snr: the ratio in decibels; or a pair of numbers, between which ``rng`` draws one. None leaves
            ``b`` as loud as it is.
        offset: where ``b`` begins, in seconds from the start of ``a``; in frames if ``a`` has no rate.
        padding: continue ``a`` with silence where ``b`` begins or ends after its end. Otherwise the result
            is as long as ``a``, and what of ``b`` does not fit is left out before it is scaled.
        random_part: of a ``b`` that is too long take a part that ``rng`` draws, not the first.
        rng: the generator for a pair ``snr`` and for ``random_part``.

    Returns:
        Float32; a pair with the rate if ``a`` is one.

    Raises:
        WrongType: ``a`` or ``b`` is not audio, or ``rng`` is not a generator of numpy.
        InvalidArgument: the rates or the numbers of channels differ, or another argument breaks a rule.

    Example:
        >>> import numpy as np
        >>> speech, noise = np.array([0.5, -0.5, 0.5, -0.5]), np.ones(2)
        >>> audio_mix(speech, noise, snr=20, offset=2).round(3)
        array([ 0.5 , -0.5 ,  0.55, -0.45], dtype=float32)
        >>> audio_mix((speech, 16000), [noise, noise], snr=(20, 20), rng=np.random.default_rng(1))[0].round(3)
        array([ 0.55, -0.45,  0.55, -0.45], dtype=float32)
    """
    base = _checked_audio("a", a)
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise WrongType(f"rng must be a numpy.random.Generator (got an object of type {type(rng).__name__})")
    ratio = _drawn_ratio(snr, rng)
    if checked_flag("random_part", random_part) and rng is None:
        raise InvalidArgument("random_part=True needs rng=, a numpy.random.Generator")
    start = _first_frame(offset, base)
    end = None if checked_flag("padding", padding) else len(base.samples)
    if end is not None and start > end:
        message = (
            f"offset must lie within a, which has {end:,} frames (got frame {start:,}); or say padding=True"
        )
        raise InvalidArgument(message)
    tracks = []
    for number, other in enumerate(_several(b)):
        samples = _partner(number, other, base)
        if end is not None:
            samples = _fitting(samples, end - start, rng if random_part else None)
        tracks.append((start, _scaled(samples, base.samples, ratio)))
        start += len(samples)
        if start >= len(base.samples):
            break
    mixed = _sum(base.samples, tracks)
    return mixed if base.rate is None else (mixed, base.rate)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Audio:
    samples: _Samples
    rate: float | None


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], int | float | np.integer)  # noqa: PLR2004


def _checked_audio(name: str, value: Any) -> _Audio:
    samples, rate = value if _is_pair(value) else (value, None)
    if not isinstance(samples, np.ndarray) or samples.dtype.kind != "f" or samples.ndim not in {1, 2}:
        kind = (
            f"{samples.dtype} of shape {samples.shape}"
            if isinstance(samples, np.ndarray)
            else f"{samples!r:.80} of type {type(samples).__name__}"
        )
        message = (
            f"{name} must be an array of floats of shape (frames,) or (frames, channels), or a pair of "
            f"such an array and its rate (got {kind})"
        )
        raise WrongType(message)
    if rate is not None and not rate > 0:
        message = f"the rate of {name} must be more than 0 (got {rate!r})"
        raise InvalidArgument(message)
    return _Audio(samples.astype(np.float32, copy=False), rate)


def _several(b: Any) -> Iterator[Any]:
    """Yield each audio of ``b``, which may be one or several."""
    if isinstance(b, np.ndarray) or _is_pair(b):
        yield b
    elif isinstance(b, Iterable) and not isinstance(b, str | bytes | dict):
        yield from b
    else:
        message = f"b must be audio, or a list or an iterator of audio (got {b!r:.80})"
        raise WrongType(message)


def _partner(number: int, value: Any, base: _Audio) -> _Samples:
    """Return the samples of one ``b``, after a check that it fits ``a``."""
    other = _checked_audio(f"b (number {number})" if number else "b", value)
    if other.rate is not None and other.rate != base.rate:
        message = (
            f"a and b must have one sampling rate (got {base.rate} and {other.rate}): resample one of "
            f"them, or give both as pairs of an array and its rate"
        )
        raise InvalidArgument(message)
    channels = {array.shape[1] for array in (base.samples, other.samples) if array.ndim > 1} - {1}
    if len(channels) > 1:
        message = (
            f"a and b must have equal numbers of channels, or one channel (got the shapes "
            f"{base.samples.shape} and {other.samples.shape})"
        )
        raise InvalidArgument(message)
    if not other.samples.size:
        message = f"b has no samples (number {number}, of shape {other.samples.shape}): leave such audio out"
        raise InvalidArgument(message)
    return other.samples


def _drawn_ratio(snr: Any, rng: np.random.Generator | None) -> float | None:
    if snr is None:
        return None
    limits = tuple(snr) if isinstance(snr, Sequence) and not isinstance(snr, str) else (snr,)
    numbers = [float(number) for number in limits if _is_number(number)]
    if len(numbers) != len(limits) or len(limits) not in {1, 2} or not all(map(math.isfinite, numbers)):
        message = f"snr must be a number of decibels or a pair of them (got {snr!r})"
        raise InvalidArgument(message)
    if len(numbers) == 1:
        return numbers[0]
    if rng is None:
        message = f"snr={snr!r} is drawn between two numbers: it needs rng=, a numpy.random.Generator"
        raise InvalidArgument(message)
    if numbers[0] > numbers[1]:
        raise InvalidArgument(f"the first number of snr must not be more than the second (got {snr!r})")
    return float(rng.uniform(numbers[0], numbers[1]))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _first_frame(offset: Any, base: _Audio) -> int:
    if not _is_number(offset) or not (offset >= 0 and math.isfinite(offset)):
        message = f"offset must be a number of seconds, 0 or more (got {offset!r})"
        raise InvalidArgument(message)
    if base.rate is None and offset != int(offset):
        message = (
            f"offset counts frames where a has no rate (got {offset!r}): give a as a pair of array and rate"
        )
        raise InvalidArgument(message)
    return int(offset) if base.rate is None else frames_of(float(offset), base.rate)


def _fitting(samples: _Samples, most: int, rng: np.random.Generator | None) -> _Samples:
    """Return at most some frames: the first ones, or those from a frame on that the generator draws."""
    first = 0 if rng is None or len(samples) <= most else int(rng.integers(len(samples) - most + 1))
    return samples[first : first + most]


def _energy(samples: _Samples) -> float:
    return float(np.mean(samples**2)) if samples.size else 0.0


def _scaled(samples: _Samples, base: _Samples, ratio: float | None) -> _Samples:
    if ratio is None:
        return samples
    target, present = _energy(base), _energy(samples)
    if not (target > 0 and present > 0):
        return samples
    gain = math.sqrt(target * 10.0 ** (-ratio / 10) / present)
    return np.float32(gain) * samples


def _sum(base: _Samples, tracks: list[tuple[int, _Samples]]) -> _Samples:
    """Return the sum of the audio and of all tracks, each from its first frame on."""
    frames = max([len(base), *(start + len(track) for start, track in tracks)])
    wide = max([base, *(track for _, track in tracks)], key=lambda array: array.shape[1:] or (0,))
    mixed = np.zeros((frames, *wide.shape[1:]), np.float32)
    for start, track in [(0, base), *tracks]:
        added = track[:, None] if track.ndim < mixed.ndim else track
        mixed[start : start + len(track)] += added
    return mixed
