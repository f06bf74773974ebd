"""The identity of an object: a number made of its etag, else of its time and size."""

from __future__ import annotations

from seekable.remote.stores.object_store import Stat, identity_of


def test_the_identity_is_golden() -> None:
    assert Stat("a", 5, '"5d41402abc4b2a76b9719d911017c592"', None, 7).identity == 771096471341310866
    assert Stat("a", 5, None, None, 7_000_000_001).identity == 7885547375493194806


def test_quotes_do_not_change_the_identity() -> None:
    assert identity_of('"abc"', modified_ns=0, size=1) == identity_of("abc", modified_ns=5, size=2)
    assert identity_of('"abd"', modified_ns=0, size=1) != identity_of("abc", modified_ns=0, size=1)


def test_without_a_strong_etag_the_time_in_seconds_and_the_size_count() -> None:
    for etag in (None, "", 'W/"abc"'):
        first = identity_of(etag, modified_ns=10**9, size=1)
        assert first == identity_of(etag, modified_ns=10**9 + 999_999_999, size=1)
        assert first != identity_of(etag, modified_ns=2 * 10**9, size=1)
        assert first != identity_of(etag, modified_ns=10**9, size=2)
    assert 0 <= first < 1 << 63
