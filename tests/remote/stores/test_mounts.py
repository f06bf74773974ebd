"""Mounts: which store an address belongs to, in this process and in others, and where its secrets go."""

from __future__ import annotations

import asyncio
import base64
import pickle
import threading
from typing import TYPE_CHECKING, Any, Literal

import fsspec  # type: ignore[import-untyped]
import pytest
from tests.remote.stores.stub_server import CONTENT, stub_server

import seekable as sk
from seekable.errors import (
    AccessDenied,
    InvalidArgument,
    MissingDependency,
    SeekableError,
    Unreachable,
    WrongType,
)
from seekable.parallel.processes import WorkerProcesses
from seekable.remote import mounts as mounts_module
from seekable.remote.mounts import Mounts, handed_down, mount, mounts_of, options_of, store_of, take_over
from seekable.remote.stores.object_store import Pin
from seekable.remote.stores.obstore_store import ObstoreStore
from seekable.storage.addresses import parse, shown
from seekable.storage.far import far
from seekable.storage.paths import output_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path

    from tests.remote.servers.bucket import Bucket

    from seekable.remote.stores.obstore_clients import Client

PLANTED = "planted-secret"


def read(path: str) -> bytes:
    """Return the bytes of an object."""

    async def all_of_it() -> bytes:
        store, key = store_of(path)
        stat = await store.stat(key)
        data = await store.read(key, 1, stat.size, pin=Pin(stat.size, stat.identity))
        return bytes(memoryview(data))

    return asyncio.run(all_of_it())


def test_one_store_serves_a_mount() -> None:
    path = mount("s3://one-store/a/b.txt", {"region": "x"})
    assert path == "s3://one-store/a/b.txt"
    store, key = store_of(path)
    assert key == "a/b.txt"
    assert store_of("s3://one-store/c") == (store, "c")
    mount("s3://one-store/d")
    assert store_of(path)[0] is store
    mount("s3://one-store/d", {"region": "y"})
    assert store_of(path)[0] is not store
    assert options_of(path).values == {"region": "y"}


def test_buckets_of_one_name_at_two_endpoints_are_two_mounts(monkeypatch: pytest.MonkeyPatch) -> None:
    first = mount("s3://two-places/a", {"endpoint": "http://one", "secret": PLANTED})
    second = mount("s3://two-places/a", {"endpoint": "http://two/"})
    assert first == "s3://two-places/a"
    assert second != first
    assert shown(second) == first
    assert mount("s3://two-places/b", {"endpoint": "http://two"}) == second.replace("/a", "/b")
    assert store_of(first)[0] is not store_of(second)[0]
    assert store_of(second)[0].shown("a") == first
    assert mount("s3://two-places/a") == first
    assert mount(second) == second
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://two")
    assert mount("s3://two-places/a", {}) == second
    files = fsspec.filesystem("memory")
    assert mount("s3://two-places/a", storage=files) not in {first, second}


def test_options_stay_in_force_for_a_bucket_that_was_asked_for_without_them_in_vain(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.upload({"a.bin": CONTENT})
    path = mount(f"{bucket.url}/a.bin")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(Exception, match=r"a\.bin cannot be read"):
        read(path)
    assert mount(path, bucket.options) == path
    assert mount(path) == path
    assert read(path) == CONTENT[1:]


def test_a_bucket_that_was_read_by_the_environment_goes_on_to_be(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.upload({"a.bin": CONTENT})
    options = bucket.options
    monkeypatch.setenv("AWS_ENDPOINT_URL", options["endpoint"])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", options["access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", options["secret_access_key"])
    monkeypatch.setenv("AWS_REGION", options["region"])
    path = mount(f"{bucket.url}/a.bin")
    assert read(path) == CONTENT[1:]
    other = mount(path, {"endpoint": "http://127.0.0.1:1"})
    assert other != path
    assert mount(path) == path
    assert read(path) == CONTENT[1:]


def test_a_file_system_of_fsspec_is_mounted_by_its_paths() -> None:
    files = fsspec.filesystem("memory")
    files.pipe_file("/mounted/a.bin", CONTENT)
    for path in ("mounted/a.bin", "/mounted/a.bin", "memory://mounted/a.bin"):
        address = mount(path, storage=files)
        assert address == "memory://mounted/a.bin"
        assert read(address) == CONTENT[1:]
    with pytest.raises(WrongType, match="must be an fsspec file system"):
        mount("a", storage="memory")
    with pytest.raises(InvalidArgument, match="no package reads addresses of nosuch"):
        read("nosuch://a/b")


def test_mounts_reach_a_child_process_with_their_secrets(bucket: Bucket) -> None:
    bucket.upload({"a.bin": CONTENT})
    path = far().mount(f"{bucket.url}/a.bin", bucket.options)
    mounts = mounts_of([path, "/not/an/address"])
    assert mounts.addresses == (bucket.url,)
    with WorkerProcesses(1) as workers:
        assert workers.submit(read_there, mounts, path).result() == CONTENT[1:]


def read_there(mounts: Mounts, path: str) -> bytes:
    assert mounts.addresses
    return read(path)


def test_pickles_for_elsewhere_have_no_secrets_and_take_nothing_away() -> None:
    options = {"endpoint": "http://pickled", "key": PLANTED, "secret": PLANTED, "region": "r"}
    path = mount("s3://pickled/a", options)
    web = mount(f"https://me:{PLANTED}@pickled.org/a?sig={PLANTED}")
    assert PLANTED not in web
    data = pickle.dumps(mounts_of([path, web]))
    assert PLANTED.encode() not in data
    before = options_of(path)
    pickle.loads(data)
    assert options_of(path) == before


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Give a function that makes this process one that has mounted nothing."""

    def forget() -> None:
        for name in ("_mounts", "_stores"):
            monkeypatch.setattr(mounts_module, name, {})

    return forget


def test_a_child_takes_over_what_its_parent_has_mounted(elsewhere: Callable[[], None]) -> None:
    elsewhere()
    seen: list[str] = []

    def answer(request: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        seen.append(request.path)
        return 200, b""

    with stub_server(answer) as address:
        path = mount("s3://taken-over/a", {"endpoint": f"http://{address}", "key": PLANTED, "secret": "s"})
        web = mount(f"http://{address}/a.bin?sig={PLANTED}")
        provided = mount("s3://provided/a", {"credential_provider": lambda: PLANTED})
        options, sent = options_of(path), handed_down()
        pickled = pickle.dumps(mounts_of([path, web]))
        elsewhere()
        take_over(sent)
        pickle.loads(pickled)
        assert options_of(path) == options
        assert options_of(provided).values["credential_provider"]() == PLANTED
        assert read(web) == CONTENT[1:]
    assert set(seen) == {f"/a.bin?sig={PLANTED}"}


def stat(path: str) -> int:
    """Return the size of an object, as readers ask for it."""
    size, _ = far().look(path)
    return size


def test_a_store_whose_secret_options_did_not_travel_says_what_to_do(
    elsewhere: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)

    def answer(request: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        known = "Credential=known/" in request.headers.get("Authorization", "")
        return (200 if known or "?sig" in request.path else 403), b""

    with stub_server(answer) as address:
        here = {"endpoint": f"http://{address}", "metadata_endpoint": f"http://{address}"}
        secret = {"access_key_id": "known", "secret_access_key": PLANTED}
        path = mount("s3://left-behind/a.bin", here | secret)
        web = mount(f"http://{address}/a.bin?sig={PLANTED}")
        sent = pickle.dumps(mounts_of([path, web]))
        elsewhere()
        sent = pickle.dumps(pickle.loads(sent))
        pickle.loads(sent)
        names = "metadata_endpoint, access_key_id, secret_access_key"
        with pytest.raises(AccessDenied, match=rf"options of s3://left-behind \({names}\) did not travel to"):
            stat(path)
        with pytest.raises(
            AccessDenied, match=r"\(queries\) did not travel .*open the data .*options=\.\.\."
        ):
            stat(web)
        elsewhere()
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "known")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the environment")
        pickle.loads(sent)
        assert stat(path) == len(CONTENT)
        elsewhere()
        pickle.loads(sent)
        assert mount(path, {**here, **secret, "timeout": 9}) == path
        pickle.loads(sent)
        assert options_of(path).values["timeout"] == 9
        assert stat(mount(f"{web}?sig=another")) == len(CONTENT)


def test_a_file_system_that_did_not_travel_is_said_before_anything_is_read(
    elsewhere: Callable[[], None],
) -> None:
    files = fsspec.filesystem("memory")
    files.pipe_file("/left-behind/a.bin", CONTENT)
    path = mount("/left-behind/a.bin", storage=files)
    sent = pickle.dumps(mounts_of([path]))
    elsewhere()
    pickle.loads(sent)
    with pytest.raises(AccessDenied, match=r"left-behind \(file_system\) .*sk\.Storage\(filesystem=\.\.\.\)"):
        stat(path)
    assert mount("/left-behind/a.bin", storage=files) == path
    assert stat(path) == len(CONTENT)


def test_options_that_cannot_be_sent_to_a_child_are_named_there(elsewhere: Callable[[], None]) -> None:
    lock = threading.Lock()
    path = mount("s3://only-here/a", {"credential_provider": lambda: lock})
    sent = handed_down()
    elsewhere()
    take_over(sent)
    with pytest.raises(AccessDenied, match=r"s3://only-here \(credential_provider\) .*cannot pickle"):
        stat(path)


def test_user_and_query_of_a_url_are_sent_and_never_shown() -> None:
    seen: list[tuple[str, str | None]] = []

    def answer(request: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        seen.append((request.path, request.headers.get("Authorization")))
        return (404 if "missing" in request.path else 200), b""

    with stub_server(answer) as address:
        signed = mount(f"http://{address}/f/a%20b.bin?X-Sig=a%2Fb{PLANTED}")
        assert signed == f"http://{address}/f/a%20b.bin"
        assert read(signed) == CONTENT[1:]
        assert {path for path, _ in seen} == {f"/f/a%20b.bin?X-Sig=a%2Fb{PLANTED}"}
        seen.clear()
        user = mount(f"http://me:{PLANTED}@{address}/c%23d.bin")
        assert read(user) == CONTENT[1:]
        basic = base64.b64encode(f"me:{PLANTED}".encode()).decode()
        assert set(seen) == {("/c%23d.bin", f"Basic {basic}")}
        missing = mount(f"http://me:{PLANTED}@{address}/missing?sig={PLANTED}")
        with pytest.raises(FileNotFoundError) as caught:
            read(missing)
        assert PLANTED not in f"{caught.value!r}{caught.getrepr(style='long')}".replace(f'"{PLANTED}', "")


def test_each_of_several_signed_urls_of_one_host_is_sent_with_its_own_query(tmp_path: Path) -> None:
    seen: set[str] = set()

    def answer(request: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        seen.add(request.path)
        return (200 if "?" in request.path else 403), b""

    with stub_server(answer) as address:
        url = f"http://{address}"
        urls = [f"{url}/a.txt?sig=1", f"{url}/b.txt?sig=2"]
        assert len(sk.open(urls, index=sk.Index(folder=tmp_path))) == 2
        assert {path for path in seen if path.startswith(("/a", "/b"))} == {"/a.txt?sig=1", "/b.txt?sig=2"}
        assert len(sk.open(f"{url}/{{c,d}}.txt?download=1", index=sk.Index(folder=tmp_path))) == 2
        with pytest.raises(AccessDenied):
            read(f"{url}/e.txt")


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("a%2fb.bin", "a%2Fb.bin"),
        ("a%2Bb+c.bin", "a%2Bb+c.bin"),
        ("%E9 1.bin", "%E9%201.bin"),
        ("a//b.bin", "a//b.bin"),
        ("a b%20c%.bin", "a%20b%20c%25.bin"),
    ],
)
def test_the_path_of_a_url_is_sent_as_it_is_written(name: str, sent: str) -> None:
    seen: set[str] = set()

    def answer(request: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        seen.add(request.path)
        return 200, b""

    with stub_server(answer) as address:
        read(mount(f"http://{address}/{name}"))
    assert seen == {f"/{sent}"}


def test_an_ipv6_literal_is_no_glob() -> None:
    with pytest.raises(Unreachable):
        sk.open("http://[::1]:9/a.jsonl", storage=sk.Storage(options={"retries": 0}))


OF_REGION = (
    b"<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region 'us-east-1' is wrong; expecting "
    b"'eu-west-1'</Message><Region>eu-west-1</Region></Error>"
)
OF_CLOCK = b"<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large.</Message></Error>"


@pytest.mark.parametrize(
    ("status", "body", "kind", "text"),
    [
        (
            400,
            OF_REGION,
            Unreachable,
            r"another region .*set AWS_REGION .*options=\{'region': 'eu-west-1'\}\) \(in sk\.kaldi",
        ),
        (301, b"", Unreachable, r"another region .*set AWS_REGION .*options=\{'region': ...\}"),
        (400, b"", AccessDenied, "or set AWS_REGION, if the region is wrong"),
        (403, OF_CLOCK, AccessDenied, "RequestTimeTooSkewed .*the clock of this machine is wrong"),
    ],
)
def test_an_answer_of_s3_that_names_what_is_wrong_here_says_what_to_set(
    status: int, body: bytes, kind: type[Exception], text: str
) -> None:
    key = {"access_key_id": "a", "secret_access_key": PLANTED}
    with stub_server(lambda _: (status, body)) as address:
        path = mount(f"s3://wrong-{status}-{len(body)}/a.bin", {**key, "endpoint": f"http://{address}"})
        store, name = store_of(path)
        with pytest.raises(kind, match=text) as caught:
            asyncio.run(store.read(name, 0, 4, pin=Pin(10, 0)))
        assert "credentials" not in str(caught.value) or status == 400


def test_requests_go_on_while_credentials_wait_for_a_log_in() -> None:
    """Tools of a cloud may wait for a browser; they are called once for all requests that wait."""
    may_go_on, made = threading.Event(), []

    def connect() -> Client:
        made.append(may_go_on.wait(10))
        raise AccessDenied("no log-in")

    async def wait(store: ObstoreStore) -> list[object]:
        waiting = [asyncio.ensure_future(store.stat("a")) for _ in range(3)]
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(may_go_on.set)
        return await asyncio.gather(*waiting, return_exceptions=True)

    found = asyncio.run(wait(ObstoreStore(parse("s3://any"), connect, secrets=())))
    assert [type(error) for error in found] == [AccessDenied] * 3
    assert made == [True]


def test_a_server_without_tls_at_an_https_address_is_said_at_once() -> None:
    with (
        stub_server(lambda _: (200, b"")) as address,
        pytest.raises(Unreachable, match=r"speaks no TLS at this port .*write http://"),
    ):
        read(mount(f"https://{address}/a.bin"))


def test_a_library_that_a_file_system_lacks_is_said_at_once() -> None:
    made: list[object] = []

    class Lacking(fsspec.AbstractFileSystem):  # type: ignore[misc]
        protocol = "lacking"
        cachable = False

        def __init__(self, **_: object) -> None:
            made.append(self)
            raise OSError("Unable to load libjvm: libjvm.so: cannot open shared object file")

    fsspec.register_implementation("lacking", Lacking, clobber=True)
    with pytest.raises(MissingDependency, match=r"lacking:// needs a library .* Unable to load libjvm"):
        output_of("lacking://host").size("lacking://host/a.bin")
    assert len(made) == 1


def test_no_error_has_a_secret_even_in_its_context() -> None:
    with stub_server(lambda _: (400, b"")) as address:
        signed = mount(f"http://me:{PLANTED}@{address}/a.bin?sig={PLANTED}")
        with pytest.raises(SeekableError) as caught:
            read(signed)
    refused = mount("s3://refused", {"unsigned_payload": PLANTED})
    with pytest.raises(InvalidArgument) as other:
        read(f"{refused}/a")
    for error in (caught.value, other.value):
        found: BaseException | None = error
        while found is not None:
            assert PLANTED not in f"{found!r}"
            found = found.__context__


@pytest.mark.parametrize("userinfo", ["", f"me:{PLANTED}@"])
def test_a_web_server_that_denies_is_said_with_the_credentials_that_were_sent(userinfo: str) -> None:
    with stub_server(lambda _: (401, b"")) as address:
        with pytest.raises(AccessDenied, match="401 Unauthorized") as caught:
            read(mount(f"http://{userinfo}{address}/a.bin"))
        found = "user and password of the URL" if userinfo else "none"
        assert f"(credentials: {found})" in str(caught.value)
        assert caught.value.__suppress_context__


def test_a_web_server_takes_no_files() -> None:
    with stub_server(lambda _: (501, b"")) as address:
        store, key = store_of(mount(f"http://{address}/a.bin"))
        either: tuple[Literal["any"] | None, ...] = (None, "any")
        for replacing in either:
            with pytest.raises(InvalidArgument, match="takes no files; write to a folder"):
                asyncio.run(store.put(key, b"1", replacing=replacing))


@pytest.mark.parametrize("status", [403, 405, 501])
def test_a_server_that_answers_get_alone_is_read(status: int) -> None:
    def answer(request: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        return (200 if request.command == "GET" else status), b""

    with stub_server(answer) as address:
        assert read(mount(f"http://{address}/a.bin?sig=1")) == CONTENT[1:]


EXPIRED = b"<Error><Code>ExpiredToken</Code><Message>The token has expired.</Message></Error>"


class Provider:
    """Credentials that are others at each call."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> dict[str, Any]:
        self.calls += 1
        secret = {"access_key_id": f"key{self.calls}", "secret_access_key": PLANTED, "token": PLANTED}
        return {**secret, "expires_at": None}


@pytest.mark.parametrize(("status", "body"), [(403, EXPIRED), (400, EXPIRED), (403, b"")])
def test_expired_credentials_are_asked_for_again_once(status: int, body: bytes) -> None:
    valid = ["key1"]
    provider = Provider()

    def answer(request: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        is_valid = f"Credential={valid[0]}/" in request.headers["Authorization"]
        return (200, b"") if is_valid else (status, body)

    with stub_server(answer) as address:
        options = {"endpoint": f"http://{address}", "credential_provider": provider}
        path = mount(f"s3://expiring-{status}-{len(body)}/a.bin", options)
        assert read(path) == CONTENT[1:]
        valid[0] = "key2"
        assert read(path) == CONTENT[1:]
        assert provider.calls == 2
        valid[0] = "none"
        with pytest.raises(AccessDenied, match="credential_provider") as caught:
            read(path)
        assert provider.calls == 3
        assert PLANTED not in str(caught.value)


def test_without_credentials_the_error_says_at_once_what_to_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with stub_server(lambda _: (403, b"")) as address:
        metadata = {"metadata_endpoint": f"http://{address}", "endpoint": f"http://{address}"}
        with pytest.raises(AccessDenied, match=r"AWS_PROFILE.*'anonymous': True"):
            read(mount("s3://no-credentials/a", metadata))
    with pytest.raises(AccessDenied, match="AZURE_STORAGE_ACCOUNT_NAME"):
        read("az://no-account/a")


def test_a_profile_of_the_aws_tools_is_read_by_boto3(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    pytest.importorskip("boto3")
    (tmp_path / "credentials").write_text(
        f"[other]\naws_access_key_id = keyofother\naws_secret_access_key = {PLANTED}\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "other")

    def answer(request: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        return (200 if "Credential=keyofother/" in request.headers["Authorization"] else 403), b""

    with stub_server(answer) as address:
        endpoint = {"endpoint": f"http://{address}"}
        assert read(mount("s3://of-profile/a", endpoint)) == CONTENT[1:]
        monkeypatch.delenv("AWS_PROFILE")
        assert read(mount("s3://of-option/a", {**endpoint, "profile": "other"})) == CONTENT[1:]
        with pytest.raises(AccessDenied, match="the profile 'missing' gives none"):
            read(
                mount(
                    "s3://of-none/a",
                    {**endpoint, "profile": "missing", "metadata_endpoint": f"http://{address}"},
                )
            )


@pytest.mark.parametrize(
    ("folder", "keys", "prefixes", "message"),
    [
        (
            "corpus",
            ("corpus//b.jsonl", "corpus/a.jsonl"),
            (),
            r"the key .corpus//b\.jsonl. has a part .*rename it",
        ),
        ("corpus", ("corpus/b\x7f.jsonl", "corpus/a.jsonl"), (), r"has a part .* control characters"),
        ("", ("a.jsonl",), ("/",), "there are keys that begin with '/'.*rename it"),
        (
            "corpus",
            ("corpus/", "corpus/a.jsonl"),
            (),
            "the key 'corpus/', which ends with '/' and is not empty",
        ),
    ],
)
def test_a_key_that_hides_those_beside_it_from_a_listing_is_named(
    folder: str, keys: tuple[str, ...], prefixes: tuple[str, ...], message: str
) -> None:
    listed = "".join(
        f"<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><Size>3</Size></Contents>"
        for key in keys
    )
    listed += "".join(f"<CommonPrefixes><Prefix>{each}</Prefix></CommonPrefixes>" for each in prefixes)
    page = f"<ListBucketResult>{listed}<IsTruncated>false</IsTruncated></ListBucketResult>".encode()

    async def list_all(store: Any) -> None:
        async for _ in store.list(prefix):
            pass

    # The stub has a page for any status but 200.
    with stub_server(lambda _: (203, page)) as address:
        options = {"access_key_id": "key-id", "secret_access_key": PLANTED, "endpoint": f"http://{address}"}
        store, prefix = store_of(mount(f"s3://odd-keys/{folder}", options))
        with pytest.raises(InvalidArgument, match=message):
            asyncio.run(store.list_folder(prefix))
        if not folder:
            with pytest.raises(InvalidArgument, match=message):
                asyncio.run(list_all(store))
