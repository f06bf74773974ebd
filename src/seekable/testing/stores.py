"""The tests that every store of objects must pass, as a class for pytest."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, ClassVar, TypeVar

from seekable.errors import DataNotFound, IndexStale, SeekableError, WrongType
from seekable.remote.stores.object_store import Passing, Pin

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from seekable.remote.stores.object_store import Stat, Store

__all__ = ["StoreTests"]

_T = TypeVar("_T")
_TRIES = 5
_CONTENT = bytes(range(256)) * 8
_RANGES = ((0, 1), (0, 2048), (1, 2047), (2047, 2048), (7, 263), (0, 2047), (5, 5), (2048, 2048))
_KEYS = ("a.txt", "f/a b+c.txt", "f/b#%20;.txt", "f/g/ä=1&2.txt", "f/g.txt", "fg/a.txt")


class StoreTests:
    """Tests a store of objects; pytest runs the methods of a class that is derived from this one.

    Override ``store``. Each test writes a few objects of a few kilobytes, and expects that nobody else does.

    Example:
        >>> from seekable.remote.mounts import store_of
        >>> class TestMemory(StoreTests):
        ...     def store(self):
        ...         return store_of("memory://store-tests")[0]
        >>> TestMemory().test_ranges_are_exact()
    """

    lists: ClassVar[bool] = True
    """False if the store gives no listings, as most web servers."""

    puts: ClassVar[bool] = True
    """False if the store is read only; then ``write`` has to be overridden."""

    folder: str = ""
    """The folder that the tests write in, with a slash at its end; empty for the whole store."""

    def store(self) -> Store:
        """Return a new store of a bucket that was empty before the test, the same bucket at each call."""
        message = f"{type(self).__name__} must have a method store()"
        raise WrongType(message)

    def write(self, key: str, content: bytes) -> None:
        """Write an object, over an older one of this key."""
        run(self.store().put(key, content, replacing="any"))

    def test_ranges_are_exact(self) -> None:
        """Each range has its bytes and no others, also when many are read at once."""
        stat = self._written(f"{self.folder}exact.bin", _CONTENT)
        store = self.store()

        async def read_all() -> list[bytes]:
            reads = [store.read(stat.key, *bounds, pin=_pin(stat)) for bounds in _RANGES * 4]
            return [bytes(memoryview(data)) for data in await asyncio.gather(*reads)]

        assert run(read_all()) == [_CONTENT[start:stop] for start, stop in _RANGES * 4]

    def test_an_empty_object_has_a_description(self) -> None:
        """Its size is 0, and its only range is empty."""
        stat = self._written(f"{self.folder}empty.bin", b"")
        assert stat.size == 0
        assert bytes(memoryview(run(self.store().read(stat.key, 0, 0, pin=_pin(stat))))) == b""

    def test_a_range_behind_the_end_is_never_short(self) -> None:
        """A pin of a larger size leads to an error."""
        stat = self._written(f"{self.folder}short.bin", b"0123456789")
        pin = Pin(20, stat.identity)
        for bounds in ((5, 15), (0, 20), (12, 20)):
            assert_fails(self.store().read(stat.key, *bounds, pin=pin), IndexStale, Passing)

    def test_an_object_that_is_missing_is_not_found(self) -> None:
        """The error names the object."""
        store = self.store()
        for call in (
            store.stat(f"{self.folder}no/such.bin"),
            store.read(f"{self.folder}no/such.bin", 0, 1, pin=Pin(1, 1)),
        ):
            assert "such.bin" in str(assert_fails(call, DataNotFound))

    def test_the_first_answer_gives_the_etag(self) -> None:
        """A pin without an etag gets it; the identity of both is the same."""
        stat = self._written(f"{self.folder}pinned.bin", _CONTENT)
        pin = Pin(stat.size, stat.identity)
        run(self.store().read(stat.key, 1, 2, pin=pin))
        assert (pin.etag is None) == (stat.etag is None)

    def test_a_changed_object_is_stale(self) -> None:
        """The same size and other bytes, a longer and a shorter object: no byte of them is delivered."""
        for content in (b"9876543210", b"0123456789abc", b"01"):
            stat = self._written(f"{self.folder}changed.bin", b"0123456789")
            without_etag = Pin(stat.size, stat.identity)
            store = self.store()
            run(store.read(stat.key, 0, 2, pin=_pin(stat)))
            self.write(stat.key, content)
            if self.describe(f"{self.folder}changed.bin").identity == stat.identity:
                continue  # A store without etags, within a second: nobody can tell.
            for pin in (_pin(stat), without_etag):
                error = assert_fails(_read_again(store, stat.key, pin), IndexStale)
                assert "changed.bin" in str(error)
                assert str(stat.etag).strip('"') in str(error) or pin is without_etag

    def test_a_cancelled_read_leaves_the_store_good(self) -> None:
        """Reads that are cancelled end with CancelledError, and the next read is right."""
        stat = self._written(f"{self.folder}cancelled.bin", _CONTENT)
        store = self.store()

        async def cancel_and_read() -> bytes:
            tasks = [asyncio.ensure_future(store.read(stat.key, 0, 2048, pin=_pin(stat))) for _ in range(8)]
            for number, task in enumerate(tasks):
                for _ in range(number):
                    await asyncio.sleep(0)
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(end, asyncio.CancelledError) or _is_content(end) for end in ended)
            return bytes(memoryview(await store.read(stat.key, 3, 2048, pin=_pin(stat))))

        assert run(cancel_and_read()) == _CONTENT[3:]

    def test_listings_have_every_object(self) -> None:
        """Keys, sizes and identities, below the store, a folder, after a key and before one."""
        if not self.lists:
            return
        at = self.folder
        stats = {at + key: self._written(at + key, key.encode()) for key in _KEYS}

        def listed(prefix: str, *, after: str = "", before: str = "") -> list[str]:
            bounds = {"after": after and at + after, "before": before and at + before}
            found = {stat.key: stat for stat in self._list(at + prefix, **bounds) if stat.key in stats}
            for key, stat in found.items():
                assert (stat.size, stat.identity) == (stats[key].size, stats[key].identity)
            return sorted(key.removeprefix(at) for key in found)

        assert listed("") == sorted(_KEYS)
        below = sorted(key for key in _KEYS if key.startswith("f/"))
        assert listed("f") == listed("f/") == below
        assert listed("f/g") == ["f/g/ä=1&2.txt"]
        assert listed("no/such/folder") == []
        for key in (*below, "f/", "f/h", "g"):
            assert listed("f", after=key) == [name for name in below if name > key]
            assert listed("f", before=key) == [name for name in below if name < key]
        assert listed("f", after=below[0], before=below[-1]) == below[1:-1]

    def test_a_folder_has_its_folders_and_objects(self) -> None:
        """The objects and folders directly below it, each once."""
        if not self.lists:
            return
        at = self.folder
        for key in _KEYS:
            self.write(at + key, b"x")
        folders, stats = run(self.store().list_folder(f"{at}f"))
        assert folders == [f"{at}f/g"]
        expected = [f"{at}{key}" for key in ("f/a b+c.txt", "f/b#%20;.txt", "f/g.txt")]
        assert sorted(stat.key for stat in stats) == expected
        folders, stats = run(self.store().list_folder(at))
        assert {f"{at}f", f"{at}fg"} <= set(folders)
        assert f"{at}a.txt" in {stat.key for stat in stats}
        assert run(self.store().list_folder(f"{at}no/such")) == ([], [])

    def test_a_write_replaces_what_it_says(self) -> None:
        """Only a new object, only one of this content, or whatever is there."""
        if not self.puts:
            return
        store = self.store()
        first = run(store.put("put.bin", b"first", replacing=None))
        assert self.describe(f"{self.folder}put.bin").identity == first.identity or first.etag is None
        assert_fails(store.put("put.bin", b"other", replacing=None), FileExistsError)
        second = run(store.put("put.bin", b"second!", replacing=self.describe(f"{self.folder}put.bin")))
        assert_fails(store.put("put.bin", b"other", replacing=first), IndexStale)
        assert self._content("put.bin") == b"second!"
        run(store.put("put.bin", b"third", replacing="any"))
        assert self._content("put.bin") == b"third"
        assert second.size == len(b"second!")

    def test_a_deleted_object_is_gone(self) -> None:
        """To delete it again changes nothing."""
        if not self.puts:
            return
        self.write("deleted.bin", b"x")
        for _ in range(2):
            run(self.store().delete("deleted.bin"))
            assert_fails(self.store().stat("deleted.bin"), DataNotFound)

    def describe(self, key: str) -> Stat:
        """Return the description of an object."""
        return run(self.store().stat(key))

    def _written(self, key: str, content: bytes) -> Stat:
        self.write(key, content)
        stat = self.describe(key)
        assert (stat.key, stat.size) == (key, len(content))
        return stat

    def _content(self, key: str) -> bytes:
        stat = self.describe(key)
        return bytes(memoryview(run(self.store().read(key, 0, stat.size, pin=_pin(stat)))))

    def _list(self, prefix: str, **bounds: str) -> list[Stat]:
        async def collect() -> list[Stat]:
            return [stat async for page in self.store().list(prefix, **bounds) for stat in page]

        return run(collect())


def run(call: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of a coroutine."""
    return asyncio.run(call)


def assert_fails(call: Coroutine[Any, Any, object], *kinds: type[Exception]) -> Exception:
    """Return the error that a coroutine ends with, which must be of one of some kinds."""
    try:
        result = run(call)
    except kinds as error:
        return error
    except (SeekableError, Passing) as error:
        message = f"expected {' or '.join(kind.__name__ for kind in kinds)}, found {error!r}"
        raise AssertionError(message) from error
    message = f"expected {' or '.join(kind.__name__ for kind in kinds)}, found the result {result!r}"
    raise AssertionError(message)


async def _read_again(store: Store, key: str, pin: Pin) -> None:
    """Read, also again where a server has closed the connection after it refused a condition."""
    for _ in range(_TRIES):
        with contextlib.suppress(Passing):
            await store.read(key, 0, 2, pin=pin)
            return
    await store.read(key, 0, 2, pin=pin)


def _pin(stat: Stat) -> Pin:
    return Pin(stat.size, stat.identity, stat.etag)


def _is_content(end: object) -> bool:
    return not isinstance(end, BaseException) and bytes(memoryview(end)) == _CONTENT  # type: ignore[arg-type]
