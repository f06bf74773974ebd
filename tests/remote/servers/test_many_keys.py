"""The server of many keys lists what it says it has."""

from __future__ import annotations

from tests.remote.servers.many_keys_server import Keys, key_of


def keys_and_rest(page: bytes, tag: str) -> list[str]:
    return [part.partition(f"</{tag}>")[0] for part in page.decode().split(f"<{tag}>")[1:]]


def listed(keys: Keys, query: str) -> tuple[list[str], list[str]]:
    found: list[str] = []
    folders: list[str] = []
    token = ""
    while True:
        page = keys.answer("GET", f"/any?list-type=2&{query}{token}", None)[2]
        found += keys_and_rest(page, "Key")
        folders += [prefix for prefix in keys_and_rest(page, "Prefix")[1:] if prefix]
        tokens = keys_and_rest(page, "NextContinuationToken")
        if not tokens:
            return found, folders
        token = f"&continuation-token={tokens[0]}"


def test_pages_have_each_key_once_in_order() -> None:
    keys = Keys(2500)
    assert listed(keys, "prefix=corpus/")[0] == [key_of(number) for number in range(2500)]
    assert listed(keys, "max-keys=7&prefix=corpus/0002/")[0] == [
        key_of(number) for number in range(2000, 2500)
    ]
    after = key_of(2400)
    assert listed(keys, f"prefix=corpus/&start-after={after}")[0] == [key_of(n) for n in range(2401, 2500)]
    assert listed(keys, "prefix=corpus/&delimiter=/&max-keys=2")[1] == [f"corpus/000{n}/" for n in range(3)]
    assert len(keys.answer("GET", "/-/log", None)[2]) > 100


def test_an_object_is_one_record() -> None:
    keys = Keys(2500)
    assert keys.answer("GET", f"/any/{key_of(7)}", None)[2] == b'{"id": "0000007"}\n'
    assert keys.answer("GET", f"/any/{key_of(7)}", "bytes=1-4")[::2] == ("206 Partial Content", b'"id"')
    assert keys.answer("GET", f"/any/{key_of(2500)}", None)[0].startswith("404")
