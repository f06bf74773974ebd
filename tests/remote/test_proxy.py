"""The proxy of the tests of remote data does the harm that it is asked for, and notes it."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING

import pytest
from tests.remote.conftest import SERVERS
from tests.remote.proxy import Fault
from tests.remote.servers.bucket import Answer, request

if TYPE_CHECKING:
    from tests.remote.proxy import Front, Proxies
    from tests.remote.servers.bucket import Bucket
    from tests.remote.servers.nginx import Nginx

CONTENT = bytes(range(256)) * 40
RANGE = {"Range": "bytes=100-299"}


@pytest.fixture
def target(nginx: Nginx) -> str:
    """The target of an object of CONTENT."""
    made = nginx.bucket()
    made.upload({"object": CONTENT})
    return f"/{made.name}/object"


def get(front: Front, target: str) -> Answer:
    return request(front.address, "GET", target, headers=RANGE)


def test_what_has_no_fault_passes_as_it_is(front: Front, target: str) -> None:
    answer = get(front, target)
    assert (answer.status, answer.body) == (206, CONTENT[100:300])
    (noted,) = front.log()
    assert (noted.method, noted.target, noted.span, noted.status) == ("GET", target, (100, 300), 206)
    assert (noted.sent, noted.fault) == (200, None)


def test_a_rule_harms_as_many_requests_as_it_says_after_those_that_pass(front: Front, target: str) -> None:
    front.rule(Fault(status=503, retry_after=2), target="object", skip=1, count=2)
    answers = [get(front, target) for _ in range(4)]
    assert [answer.status for answer in answers] == [206, 503, 503, 206]
    assert answers[1].headers["retry-after"] == "2"
    assert b"SlowDown" in answers[1].body


@pytest.mark.parametrize("fault", [Fault(reset_after=50), Fault(close_after=50)], ids=["reset", "close"])
def test_a_connection_breaks_off_in_the_body(fault: Fault, front: Front, target: str) -> None:
    front.rule(fault)
    with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
        get(front, target)
    assert front.log()[0].sent == 50
    assert get(front, target).body == CONTENT[100:300]


@pytest.mark.parametrize("fault", [Fault(hang=True), Fault(hang_after=10)], ids=["head", "body"])
def test_a_request_that_hangs_ends_with_its_client(fault: Fault, front: Front, target: str) -> None:
    front.rule(fault)
    connection = http.client.HTTPConnection(front.address)
    connection.request("GET", target, headers=RANGE)
    front.wait(1)
    if fault.hang_after:
        assert len(connection.getresponse().read(fault.hang_after)) == fault.hang_after
    assert front.at_once == 1
    connection.close()
    get(front, target)
    front.wait(2)
    assert front.log()[0].sent == (fault.hang_after or 0)


def test_answers_lie_about_their_length_and_their_etag(front: Front, target: str) -> None:
    front.rule(Fault(lie=20, etag='"other"'))
    front.rule(Fault(longer=20, etag=""))
    front.rule(Fault(whole=True))
    front.rule(Fault(no_length=True))
    short, long, whole, unknown = (get(front, target) for _ in range(4))
    assert (short.body, short.headers["etag"]) == (CONTENT[100:280], '"other"')
    assert short.headers["content-range"] == f"bytes 100-299/{len(CONTENT)}"
    assert long.body == CONTENT[100:300] + bytes(20)
    assert "etag" not in long.headers
    assert (whole.status, whole.body) == (200, CONTENT)
    assert unknown.body == CONTENT[100:300]
    assert "content-length" not in unknown.headers


def test_chances_depend_on_the_seed_and_the_request_alone(front: Front, target: str) -> None:
    def statuses(seed: int) -> list[int]:
        front.by_chance(seed, {Fault(status=500): 0.3, Fault(status=503): 0.3}, most_in_a_row=2)
        return [get(front, target).status for _ in range(20)]

    first = statuses(1)
    assert set(first) == {206, 500, 503}
    assert all(206 in first[start : start + 3] for start in range(18))
    assert statuses(1) == first
    assert statuses(2) != first
    front.calm()
    assert get(front, target).status == 206


def test_a_front_that_is_shut_refuses_connections(proxies: Proxies, nginx: Nginx) -> None:
    front = proxies.before(nginx.address)
    front.shut()
    with pytest.raises(ConnectionRefusedError):
        request(front.address, "GET", "/")


@pytest.mark.parametrize("store", SERVERS, indirect=True)
def test_each_server_keeps_what_is_uploaded(store: Bucket) -> None:
    store.upload({"folder/a b.txt": b"first", "empty": b""})
    assert (store.content("folder/a b.txt"), store.content("empty")) == (b"first", b"")
    store.upload({"folder/a b.txt": b"second"})
    assert store.content("folder/a b.txt") == b"second"
    store.delete("empty")
    with pytest.raises(KeyError):
        store.content("empty")
