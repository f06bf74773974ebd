"""sk.audio_mix: gains, offsets, padding, channels, several partners; equal to Lhotse's arithmetic."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from tests.sound.waves import signal

import seekable as sk

SPEECH, NOISE = signal(2000), 0.3 * signal(700)


def energy(samples: Any) -> float:
    return float(np.mean(np.asarray(samples, dtype=np.float64) ** 2))


@pytest.mark.parametrize("snr", [-5, 0, 10.5, 20])
def test_the_ratio_of_the_energies_is_the_one_asked_for(snr: float) -> None:
    added = sk.audio_mix(SPEECH, signal(2000, 1)[::-1] * 7, snr=snr) - SPEECH
    assert 10 * math.log10(energy(SPEECH) / energy(added)) == pytest.approx(snr, abs=1e-3)


def test_golden_values() -> None:
    speech, noise = np.array([0.5, -0.5, 0.25, -0.25]), np.array([0.1, -0.1])
    mixed = sk.audio_mix(speech, noise, snr=6, offset=1)
    assert mixed.tolist() == pytest.approx([0.5, -0.3018883466720581, 0.0518883615732193, -0.25], rel=1e-6)


def test_without_a_ratio_nothing_is_scaled() -> None:
    np.testing.assert_array_equal(sk.audio_mix(SPEECH, NOISE)[:700], SPEECH[:700] + NOISE)


def test_silence_is_not_scaled() -> None:
    np.testing.assert_array_equal(sk.audio_mix(np.zeros(700), NOISE, snr=10), NOISE)
    np.testing.assert_array_equal(sk.audio_mix(SPEECH, np.zeros(9), snr=10), SPEECH)


def test_the_result_is_as_long_as_the_first_unless_it_is_padded() -> None:
    loud = np.concatenate([np.full(1000, 0.1), np.full(9000, 100.0)])
    mixed = sk.audio_mix(SPEECH, loud, snr=0, offset=1000)
    assert mixed.shape == (2000,)
    assert energy(mixed[1000:] - SPEECH[1000:]) == pytest.approx(energy(SPEECH), rel=1e-3)
    padded = sk.audio_mix(SPEECH, NOISE, offset=5000, padding=True)
    assert padded.shape == (5700,)
    np.testing.assert_array_equal(padded, np.concatenate([SPEECH, np.zeros(3000), NOISE]))
    np.testing.assert_array_equal(sk.audio_mix(SPEECH, NOISE, offset=2000), SPEECH)


def test_offsets_are_seconds_where_there_is_a_rate() -> None:
    mixed, rate = sk.audio_mix((SPEECH, 1000), (NOISE, 1000), offset=0.1, snr=3)
    assert rate == 1000
    np.testing.assert_array_equal(mixed, sk.audio_mix(SPEECH, NOISE, offset=100, snr=3))


def test_several_follow_one_another_until_the_end() -> None:
    mixed = sk.audio_mix(SPEECH, [NOISE, NOISE, NOISE, NOISE], snr=5)
    gain = math.sqrt(energy(SPEECH) * 10**-0.5 / energy(NOISE))
    rest = math.sqrt(energy(SPEECH) * 10**-0.5 / energy(NOISE[:600]))
    noise = np.concatenate([gain * NOISE, gain * NOISE, rest * NOISE[:600]])
    np.testing.assert_allclose(mixed, SPEECH + noise, rtol=0, atol=1e-6)


def test_of_an_iterator_no_more_is_taken_than_needed() -> None:
    drawn = itertools.count()
    mixed = sk.audio_mix(SPEECH, (NOISE * next(drawn) for _ in itertools.repeat(None)))
    assert mixed.size == 2000
    assert next(drawn) == 3


@pytest.mark.parametrize(
    ("wide", "narrow"), [(SPEECH[:, None], signal(2000, 2)), (signal(2000, 2), SPEECH[:, None])]
)
def test_one_channel_is_added_to_each(wide: Any, narrow: Any) -> None:
    mixed = sk.audio_mix(wide, narrow)
    np.testing.assert_array_equal(mixed, wide + narrow)
    flat = sk.audio_mix(
        wide if wide.shape[1] > 1 else wide[:, 0], narrow if narrow.shape[1] > 1 else narrow[:, 0]
    )
    np.testing.assert_array_equal(flat, mixed)


def test_what_is_random_comes_from_the_generator() -> None:
    def mixed(seed: int) -> Any:
        rng = np.random.default_rng(seed)
        return sk.audio_mix(NOISE, SPEECH, snr=(0, 20), random_part=True, rng=rng)

    np.testing.assert_array_equal(mixed(1), mixed(1))
    assert not np.array_equal(mixed(1), mixed(2))
    ratios = [10 * math.log10(energy(NOISE) / energy(mixed(seed) - NOISE)) for seed in range(50)]
    assert 0 <= min(ratios) < 5
    assert 15 < max(ratios) <= 20.001


def test_the_arguments_stay_as_they_are() -> None:
    speech, noise = SPEECH.copy(), NOISE.copy()
    sk.audio_mix(speech, noise, snr=3)
    sk.audio_mix(speech, np.zeros(1), snr=3)[:] = 9
    np.testing.assert_array_equal(speech, SPEECH)
    np.testing.assert_array_equal(noise, NOISE)


@pytest.mark.parametrize(
    ("a", "b", "arguments", "message"),
    [
        (SPEECH.astype(np.int16), NOISE, {}, "a must be an array of floats .* int16"),
        ([0.5], NOISE, {}, "a must be an array of floats"),
        (SPEECH, "noise", {}, "b must be audio"),
        (SPEECH, {"data": NOISE}, {}, "b must be audio"),
        (SPEECH, [NOISE, None], {}, r"b \(number 1\) must be an array"),
        (SPEECH, np.zeros((2, 2, 2)), {}, "b must be an array"),
        (SPEECH, np.zeros(0), {}, "b has no samples"),
        ((SPEECH, 16000), (NOISE, 8000), {}, "one sampling rate .*16000 and 8000"),
        (SPEECH, (NOISE, 8000), {}, "one sampling rate .*None and 8000"),
        ((SPEECH, 0), NOISE, {}, "rate of a must be more than 0"),
        (signal(9, 2), signal(9, 3), {}, r"equal numbers of channels, .*\(9, 2\) and \(9, 3\)"),
        (SPEECH, NOISE, {"offset": 2001}, "offset must lie within a, which has 2,000 frames"),
        (SPEECH, NOISE, {"offset": -1}, "offset must be"),
        (SPEECH, NOISE, {"offset": math.nan}, "offset must be"),
        (SPEECH, NOISE, {"offset": 0.5}, "offset counts frames where a has no rate"),
        (SPEECH, NOISE, {"snr": math.nan}, "snr must be a number of decibels"),
        (SPEECH, NOISE, {"snr": "10"}, "snr must be"),
        (SPEECH, NOISE, {"snr": (1, 2, 3)}, "snr must be"),
        (SPEECH, NOISE, {"snr": (5, 10)}, "it needs rng="),
        (SPEECH, NOISE, {"snr": True}, "snr must be"),
        (SPEECH, NOISE, {"snr": (10, 5), "rng": np.random.default_rng(0)}, "not be more than the second"),
        (SPEECH, NOISE, {"snr": (5, 10), "rng": 3}, "rng must be a numpy.random.Generator .*int"),
        (SPEECH, NOISE, {"random_part": True}, "needs rng="),
        (SPEECH, NOISE, {"padding": 1}, "padding must be True or False"),
    ],
)
def test_a_wrong_argument_is_an_error(a: Any, b: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(sk.SeekableError, match=message):
        sk.audio_mix(a, b, **arguments)
