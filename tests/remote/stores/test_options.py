"""Options of stores: one name each, checked values, and no secret in a text or in a pickle for elsewhere."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from seekable.errors import InvalidArgument, WrongType
from seekable.remote.stores.storage_options import StorageOptions, checked_options

if TYPE_CHECKING:
    from pathlib import Path

PLANTED = "planted-secret"

SPELLINGS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "s3",
        {"key": "a", "secret": "b", "token": "c"},
        {"access_key_id": "a", "secret_access_key": "b", "session_token": "c"},
    ),
    ("s3", {"AWS_REGION": "x", "endpoint_url": "http://h"}, {"region": "x", "endpoint": "http://h"}),
    (
        "s3",
        {"anon": "true", "timeout": "30s", "retries": "3"},
        {"anonymous": True, "timeout": 30.0, "retries": 3},
    ),
    ("s3", {"skip_signature": True, "client_options": {"timeout": 5}}, {"anonymous": True, "timeout": 5.0}),
    ("gs", {"token": "a", "google_service_account": "b"}, {"bearer_token": "a", "service_account": "b"}),
    (
        "az",
        {"account": "a", "sas_token": "b", "azure_storage_account_key": "c"},
        {"account_name": "a", "sas_key": "b", "account_key": "c"},
    ),
    ("https", {"headers": {"X-A": "b"}, "region": None}, {}),
    ("sftp", {"anything": 1}, {"anything": 1}),
    ("s3", {"region": None}, {}),
]


@pytest.mark.parametrize(("scheme", "given", "values"), [case for case in SPELLINGS if case[0] != "https"])
def test_an_option_has_one_name(scheme: str, given: dict[str, Any], values: dict[str, Any]) -> None:
    assert checked_options(scheme, given).values == values


WRONG: list[tuple[str, Any, type[Exception], str]] = [
    ("s3", {"regoin": "x"}, InvalidArgument, "did you mean 'region'"),
    ("https", {"region": "x"}, InvalidArgument, "https:// addresses has no option 'region'"),
    ("s3", {"key": "a", "access_key_id": "b"}, InvalidArgument, "twice"),
    ("s3", {"timeout": "soon"}, InvalidArgument, "number"),
    ("s3", {"timeout": 0}, InvalidArgument, "number"),
    ("s3", {"retries": -1}, InvalidArgument, "at least 0"),
    ("s3", {"retries": 2.5}, InvalidArgument, "whole number of at least 0"),
    ("s3", {"no_sign_request": True}, InvalidArgument, "its name here is 'anonymous'"),
    ("gs", {"use_ssl": False}, InvalidArgument, "'endpoint' says it, by https:// or http://"),
    (
        "s3",
        {"client_kwargs": {"verify": False}},
        InvalidArgument,
        "'allow_invalid_certificates', with the opp",
    ),
    ("s3", {"addressing_style": "path"}, InvalidArgument, "its name here is 'virtual_hosted_style_request'"),
    ("s3", {"anonymous": "perhaps"}, InvalidArgument, "True or False"),
    ("s3", {"headers": "X: y"}, WrongType, "mapping"),
    ("s3", {"credential_provider": 3}, WrongType, "callable"),
    ("s3", {"endpoint": "127.0.0.1:9000"}, InvalidArgument, "must be a URL such as"),
    ("s3", {"endpoint_url": "me:word@host"}, InvalidArgument, "(?<!word@)'host'"),
    ("gs", {"endpoint": 9000}, WrongType, "must be a text"),
    ("s3", "region=x", WrongType, "mapping"),
    ("s3", {3: "x"}, WrongType, "must be str"),
]


@pytest.mark.parametrize(("scheme", "given", "kind", "text"), WRONG)
def test_a_wrong_option_is_an_error_that_says_why(
    scheme: str, given: Any, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        checked_options(scheme, given)


def test_an_endpoint_may_be_empty_and_in_the_environment_must_be_a_url(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert checked_options("s3", {"endpoint": ""}).values == {}
    monkeypatch.setenv("AWS_ENDPOINT_URL", "127.0.0.1:9000")
    with pytest.raises(InvalidArgument, match="AWS_ENDPOINT_URL must be a URL"):
        checked_options("s3", None).endpoint("s3")


def test_an_endpoint_of_an_aws_profile_is_used_as_by_other_tools(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    file.write_text(
        "[default]\nendpoint_url = http://of-default\n"
        "[profile one]\nregion = x\nendpoint_url = http://of-one/\n"
        "[profile two]\nendpoint_url = http://of-all\nservices = mine\n"
        "[services mine]\ns3 =\n  endpoint_url = http://of-s3\nec2 =\n  endpoint_url = http://of-ec2\n"
        "[profile three]\nendpoint_url = host\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    options = {name: checked_options("s3", {"profile": name}) for name in ("one", "two", "three", "none")}
    assert checked_options("s3", None).endpoint("s3") == "http://of-default"
    assert options["one"].endpoint("s3") == "http://of-one"
    assert options["one"].place("s3") != options["two"].place("s3")
    assert options["two"].endpoint("s3") == "http://of-s3"
    assert options["none"].endpoint("s3") == checked_options("gs", None).endpoint("gs") == ""
    with pytest.raises(InvalidArgument, match=r"endpoint_url of the AWS profile must be a URL .*'host'"):
        options["three"].endpoint("s3")
    monkeypatch.setenv("AWS_PROFILE", "two")
    assert checked_options("s3", None).endpoint("s3") == "http://of-s3"
    assert checked_options("s3", {"endpoint": "http://given"}).endpoint("s3") == "http://given"
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    assert checked_options("s3", None).endpoint("s3") == ""


def test_a_file_system_has_its_own_options() -> None:
    with pytest.raises(InvalidArgument, match="exclude each other"):
        checked_options("s3", {"region": "x"}, object())


SECRET: dict[str, dict[str, Any]] = {
    "s3": {
        "key": PLANTED,
        "secret": PLANTED,
        "headers": {"A": PLANTED},
        "endpoint": f"http://u:{PLANTED}@h",
        "region": "r",
    },
    "gs": {"service_account_key": PLANTED, "bearer_token": PLANTED},
    "az": {
        "account_key": PLANTED,
        "sas_key": PLANTED,
        "client_secret": PLANTED,
        "proxy_url": f"http://a:{PLANTED}@h",
    },
    "sftp": {"password": PLANTED, "anything": PLANTED},
}


@pytest.mark.parametrize("scheme", SECRET)
def test_secrets_stay_out_of_texts_and_pickles(scheme: str) -> None:
    options = checked_options(scheme, SECRET[scheme])
    for text in (repr(options), str(options), f"{options}"):
        assert PLANTED not in text
    assert PLANTED.encode() not in pickle.dumps(options)
    kept: StorageOptions = pickle.loads(pickle.dumps(options))
    assert kept.values.get("region") == options.values.get("region")
