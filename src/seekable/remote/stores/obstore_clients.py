"""Clients of obstore: one for a bucket, a container or a host, with its credentials."""

from __future__ import annotations

import base64
import os
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from seekable._optional import is_installed, optional
from seekable.errors import AccessDenied, InvalidArgument
from seekable.remote.stores.obstore_errors import redacted
from seekable.remote.stores.storage_options import CLIENT_NAMES, has_aws_files, options_in_words
from seekable.storage.addresses import SUFFIX_MARK, Address, UrlSecrets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import boto3  # type: ignore[import-untyped]
    import obstore.auth.boto3 as obstore_boto3
    import obstore.exceptions as obstore_exceptions
    import obstore.store as obstore_stores

    from seekable.remote.stores.storage_options import StorageOptions
else:
    obstore_stores = optional("obstore.store", extra="remote")
    obstore_exceptions = optional("obstore.exceptions", extra="remote")
    boto3 = optional("boto3", extra="remote")
    obstore_boto3 = optional("obstore.auth.boto3", extra="remote")

__all__ = ["Client", "client_of", "is_sent_as_written", "key_of_path", "path_of_key", "written"]

_SAFE: Final = "/!$&'()*+,;=:@~"
"""The characters that paths of URLs have as they are, beside letters, digits and ``-._``."""

_ESCAPE: Final = re.compile("%[0-9A-Fa-f]{2}")
_LONE_PERCENT: Final = re.compile("%(?![0-9A-Fa-f]{2})")
_LEFT_OUT: Final = frozenset({"", ".", ".."})
"""Segments of which obstore makes no path."""

_TIMEOUT_SECONDS: Final = 60.0
"""The longest time of a request with its body."""

_READ_TIMEOUT_SECONDS: Final = 10.0
"""The longest time without a byte."""

_CONNECT_TIMEOUT_SECONDS: Final = 5.0

_RETRY: Final[Any] = {
    "max_retries": 0,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {
        "init_backoff": timedelta(milliseconds=100),
        "max_backoff": timedelta(seconds=1),
        "base": 2,
    },
}
"""No retries: the fetcher retries, because only it sees the refusals of all requests."""

_OURS: Final = frozenset(
    (
        *("anonymous", "timeout", "connect_timeout", "read_timeout", "retries", "headers"),
        *("credential_provider", "allow_http", "profile"),
    )
)
"""The options that do not configure a store."""

_CERTIFICATES: Final = ("root_certificate", "proxy_ca_certificate")
_BUNDLE: Final = "REQUESTS_CA_BUNDLE"
_PEM: Final = "-----BEGIN"

_AWS_ROLES: Final = (
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)


def path_of_key(key: str) -> str:
    """Return the path for obstore, which encodes it itself."""
    return unquote(key)


def key_of_path(path: str) -> str:
    """Return the key of a path of obstore."""
    return quote(path, safe=_SAFE)


def written(key: str) -> str:
    """Return a key with its escapes as they are, and with all else encoded that a URL cannot have.

    Example:
        >>> written("a%2fb c%.jsonl")
        'a%2Fb%20c%25.jsonl'
    """
    whole = _LONE_PERCENT.sub("%25", key)
    return _ESCAPE.sub(lambda escape: escape[0].upper(), quote(whole, safe=f"%{_SAFE}"))


def is_sent_as_written(key: str) -> bool:
    """Return True if obstore, given the path of a key, asks for the URL that was written.

    It cannot send an encoded slash, or bytes that are not UTF-8, and it takes no empty segment. A server may
    have other files under these.

    Example:
        >>> is_sent_as_written("a b%20c.jsonl"), is_sent_as_written("a%2Fb.jsonl"), is_sent_as_written("a//b")
        (True, False, False)
    """
    if "%" not in key and "//" not in key and "." not in key:
        return True
    return key_of_path(path_of_key(key)) == written(key) and _LEFT_OUT.isdisjoint(key.split("/"))


@dataclass(frozen=True, slots=True)
class Client:
    """A client of obstore, and the kind of its credentials.

    Attributes:
        store: the store of obstore.
        credentials: a text for the kind of credentials, without their content.
    """

    store: Any
    credentials: str


@dataclass(frozen=True, slots=True)
class _Credentials:
    kind: str
    provider: Any = None
    is_anonymous: bool = False


def client_of(mount: Address, options: StorageOptions, secrets: UrlSecrets, *, key: str = "") -> Client:
    """Return a new client of a bucket or a host.

    Args:
        mount: the address of the whole bucket or host.
        options: the options of the store.
        secrets: the userinfo and the query of the URL.
        key: of a client of one URL its path, which becomes part of the client; its object has the key "".

    Raises:
        AccessDenied: the configuration lacks what names the account.
        InvalidArgument: an option has a value that obstore refuses.
        MissingDependency: obstore is not installed.
    """
    bucket = mount.authority.partition(SUFFIX_MARK)[0]
    try:
        if mount.scheme == "s3":
            return _s3(bucket, options)
        if mount.scheme == "gs":
            return _gs(bucket, options)
        if mount.scheme == "az":
            return _az(bucket, options, secrets)
        return _web(f"{mount.scheme}://{bucket}", options, secrets, key)
    except (obstore_exceptions.BaseError, ValueError, TypeError) as error:
        said = redacted(str(error), options.secrets)
    # Outside of the handler: the error of obstore may have a secret.
    if "Account must be specified" in said:
        given = options_in_words("{'account_name': ...}")
        way = f"set AZURE_STORAGE_ACCOUNT_NAME, or give {given}, or write az://CONTAINER@ACCOUNT/..."
        raise AccessDenied(f"{mount.scheme}://{bucket}: the name of the storage account is not known; {way}")
    raise InvalidArgument(f"{mount.scheme}://{bucket}: the options of the store are refused: {said}")


def _s3(bucket: str, options: StorageOptions) -> Client:
    credentials = _aws_credentials(options)
    config = _config(options)
    if options.endpoint("s3"):
        config["endpoint"] = options.endpoint("s3")
    client_options = _client_options(
        options, endpoint=options.endpoint("s3"), bundles=("AWS_CA_BUNDLE", _BUNDLE)
    )
    return _client(obstore_stores.S3Store, bucket, config, credentials, client_options)


def _gs(bucket: str, options: StorageOptions) -> Client:
    config = _config(options)
    endpoint = str(config.pop("endpoint", "") or options.endpoint("gs"))
    if endpoint:
        config["base_url"] = endpoint
    elif "http://" in str(config.get("service_account_key", "")):
        endpoint = "http://"  # The key of an emulator has the address of its server.
    given = [name for name in ("service_account", "service_account_key", "bearer_token") if name in config]
    credentials = _cloud_credentials(
        options, given, "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"
    )
    client_options = _client_options(options, endpoint=endpoint)
    return _client(obstore_stores.GCSStore, bucket, config, credentials, client_options)


def _az(bucket: str, options: StorageOptions, secrets: UrlSecrets) -> Client:
    container, _, account = bucket.partition("@")
    config = _config(options)
    if account:
        config.setdefault("account_name", account)
    if secrets.query:
        config.setdefault("sas_key", secrets.query)
    if options.endpoint("az"):
        config["endpoint"] = options.endpoint("az")
    given = [name for name in ("account_key", "sas_key", "client_secret", "token") if name in config]
    names = ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_KEY", "AZURE_CLIENT_SECRET")
    credentials = _cloud_credentials(options, given, *names)
    client_options = _client_options(options, endpoint=options.endpoint("az"))
    return _client(obstore_stores.AzureStore, container, config, credentials, client_options)


def _client(
    kind: Any, bucket: str, config: dict[str, Any], credentials: _Credentials, client_options: Any
) -> Client:
    store = kind(
        bucket,
        **config,
        skip_signature=credentials.is_anonymous,
        client_options=client_options,
        retry_config=_RETRY,
        credential_provider=credentials.provider,
    )
    return Client(store, credentials.kind)


def _web(host: str, options: StorageOptions, secrets: UrlSecrets, key: str) -> Client:
    url = f"{host}/{written(key)}" if key else host
    client_options = _client_options(options, endpoint=url)
    kind = "headers of the options" if options.values.get("headers") else "none"
    if secrets.userinfo:
        pair = base64.b64encode(unquote(secrets.userinfo).encode()).decode()
        headers = {"Authorization": f"Basic {pair}", **client_options.get("default_headers", {})}
        client_options["default_headers"] = headers
        kind = "user and password of the URL"
    if secrets.query:
        url, kind = f"{url}?{secrets.query}", "the query of the URL"
    return Client(obstore_stores.HTTPStore(url, client_options=client_options, retry_config=_RETRY), kind)


def _aws_credentials(options: StorageOptions) -> _Credentials:
    """Return the credentials that S3 requests are signed with: the first that are found."""
    chosen = _chosen_credentials(options, ["access_key_id"] if "access_key_id" in options.values else [])
    if chosen is not None:
        return chosen
    profile = options.values.get("profile") or os.environ.get("AWS_PROFILE")
    if not profile and os.environ.get("AWS_ACCESS_KEY_ID"):
        return _Credentials("AWS_ACCESS_KEY_ID of the environment")
    if not profile and any(os.environ.get(name) for name in _AWS_ROLES):
        return _Credentials("the role of this machine's environment")
    if profile or has_aws_files():
        return _of_profile(profile)
    return _Credentials("the metadata service of this machine")


def _of_profile(profile: str | None) -> _Credentials:
    name = f"the profile {profile or 'default'!r}"
    if not is_installed("boto3"):
        return _Credentials(f"none: {name} needs boto3 (pip install boto3)")
    try:
        session = boto3.Session(profile_name=profile)
        return _Credentials(f"{name}, by boto3", obstore_boto3.Boto3CredentialProvider(session))
    except Exception as error:  # noqa: BLE001 - boto3 has many errors, and other credentials may be found
        return _Credentials(f"none: {name} gives none ({redacted(str(error))})")


def _cloud_credentials(options: StorageOptions, given: Sequence[str], *variables: str) -> _Credentials:
    chosen = _chosen_credentials(options, given)
    if chosen is not None:
        return chosen
    found = next((name for name in variables if os.environ.get(name)), None)
    return _Credentials(f"{found} of the environment" if found else "those of this machine and user")


def _chosen_credentials(options: StorageOptions, given: Sequence[str]) -> _Credentials | None:
    """Return the credentials that the options name; None if they name none."""
    if options.values.get("anonymous"):
        return _Credentials("none, anonymous", is_anonymous=True)
    provider = options.values.get("credential_provider")
    if provider is not None:
        return _Credentials("a credential_provider", provider)
    return _Credentials(f"{given[0]} of the options") if given else None


def _config(options: StorageOptions) -> dict[str, Any]:
    """Return the options that configure the store of obstore."""
    return {name: value for name, value in options.values.items() if name not in _OURS | CLIENT_NAMES}


def _client_options(options: StorageOptions, *, endpoint: str, bundles: Sequence[str] = (_BUNDLE,)) -> Any:
    """Return the options of the HTTP client.

    obstore does not read the environment's client options where any are given, so these stand here.

    Args:
        options: the options of the store.
        endpoint: the URL of the server; empty for that of the cloud.
        bundles: the variables that may name a file of certificates, the first that is set counts.
    """
    values = options.values
    timeout = values.get("timeout", _TIMEOUT_SECONDS)
    seconds = {
        "timeout": timeout,
        "read_timeout": values.get("read_timeout", min(timeout, _READ_TIMEOUT_SECONDS)),
        "connect_timeout": values.get("connect_timeout", min(timeout, _CONNECT_TIMEOUT_SECONDS)),
    }
    found: dict[str, Any] = {name: timedelta(seconds=value) for name, value in seconds.items()}
    found |= {name: value for name, value in values.items() if name in CLIENT_NAMES}
    found |= _certificates(values, bundles)
    if "proxy_url" not in found and "*" in map(str.strip, _environment("NO_PROXY").split(",")):
        # The client takes the star for names of hosts alone, and not for addresses.
        found |= {"proxy_url": "http://localhost", "proxy_excludes": "*,0.0.0.0/0,::/0"}
    allowed = os.environ.get("AWS_ALLOW_HTTP", "").lower() in {"1", "true"}
    found["allow_http"] = values.get("allow_http", endpoint.startswith("http://") or allowed)
    if values.get("headers"):
        found["default_headers"] = values["headers"]
    return found


def _certificates(values: Mapping[str, Any], bundles: Sequence[str]) -> dict[str, str]:
    """Return the certificates to trust in PEM: those given, each as PEM or as a path, else the environment's.

    Raises:
        InvalidArgument: a file of certificates cannot be read.
    """
    given = {name: values[name] for name in _CERTIFICATES if name in values}
    named = next((name for name in bundles if os.environ.get(name)), None)
    if "root_certificate" not in given and named is not None:
        given["root_certificate"] = os.environ[named]
    found = {}
    for name, value in given.items():
        if _PEM in value:
            found[name] = value
            continue
        try:
            with open(value, encoding="ascii", errors="replace") as file:
                found[name] = file.read()
        except OSError as error:
            source = f"the option {name!r}" if name in values else named
            message = f"{source} is no PEM and no file that can be read ({value!r}: {error.strerror})"
            raise InvalidArgument(message) from error
    return found


def _environment(name: str) -> str:
    return os.environ.get(name) or os.environ.get(name.lower(), "")
