"""The options of a store: endpoint, credentials, timeouts; no text and no pickle has a secret."""

from __future__ import annotations

import configparser
import difflib
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, final

from seekable.errors import InvalidArgument, WrongType
from seekable.storage.access import PUBLIC_OPTIONS
from seekable.storage.addresses import shown

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["StorageOptions", "checked_options", "has_aws_files", "options_in_words"]

_S3: Final = frozenset(
    (
        *("access_key_id", "secret_access_key", "session_token", "region", "default_region", "endpoint"),
        *("role_arn", "role_session_name", "checksum_algorithm", "conditional_put", "copy_if_not_exists"),
        *("disable_tagging", "disable_bulk_delete", "metadata_endpoint", "request_payer"),
        *("server_side_encryption", "sse_bucket_key_enabled", "sse_kms_key_id"),
        *("sse_customer_encryption_key_base64", "sts_endpoint", "unsigned_payload"),
        *("virtual_hosted_style_request", "s3_express", "web_identity_token_file"),
        *("container_credentials_relative_uri", "container_credentials_full_uri"),
        *("container_authorization_token_file", "imdsv1_fallback", "profile"),
    )
)
_GS: Final = frozenset(
    (*("service_account", "service_account_key", "application_credentials", "bearer_token", "endpoint"),)
)
_AZ: Final = frozenset(
    (
        *("account_name", "account_key", "client_id", "client_secret", "tenant_id", "authority_host"),
        *("sas_key", "token", "credential_type", "use_emulator", "use_fabric_endpoint", "endpoint"),
        *("msi_endpoint", "object_id", "msi_resource_id", "federated_token_file", "use_azure_cli"),
        *("disable_tagging", "encryption_key", "fabric_token_service_url", "fabric_workload_host"),
        *("fabric_session_token", "fabric_cluster_identifier"),
    )
)
_EVERYWHERE: Final = frozenset(
    (
        *("anonymous", "timeout", "connect_timeout", "read_timeout", "retries", "headers"),
        *("credential_provider", "allow_http"),
    )
)

CLIENT_NAMES: Final = frozenset(
    (
        *("allow_invalid_certificates", "pool_idle_timeout", "pool_max_idle_per_host", "proxy_url"),
        *("proxy_ca_certificate", "proxy_excludes", "randomize_addresses", "root_certificate"),
        *("user_agent", "http1_only", "http2_only"),
    )
)
"""The names of options that are passed on to the HTTP client as they are."""

_NAMES: Final = {
    "s3": _S3,
    "gs": _GS,
    "az": _AZ,
    "http": frozenset[str](),
    "https": frozenset[str](),
}
"""The names of options for each scheme that obstore reads, beside those that every scheme has."""

_ALIASES: Final = {
    "anon": "anonymous",
    "skip_signature": "anonymous",
    "endpoint_url": "endpoint",
    "base_url": "endpoint",
    "default_headers": "headers",
    "max_retries": "retries",
}
_ALIASES_OF: Final = {
    "s3": {
        "key": "access_key_id",
        "secret": "secret_access_key",
        "token": "session_token",
        "region_name": "region",
    },
    "gs": {"token": "bearer_token", "service_account_path": "service_account"},
    "az": {
        "account": "account_name",
        "key": "account_key",
        "access_key": "account_key",
        "sas_token": "sas_key",
    },
}
_PREFIXES: Final = {
    "s3": ("aws_",),
    "gs": ("google_", "gcs_", "gs_"),
    "az": ("azure_storage_", "azure_", "adls_"),
}
_HINTS: Final = {
    "no_sign_request": "its name here is 'anonymous'",
    "no_sign": "its name here is 'anonymous'",
    "verify": "its name here is 'allow_invalid_certificates', with the opposite value, or 'root_certificate'",
    "use_ssl": "'endpoint' says it, by https:// or http://",
    "addressing_style": "its name here is 'virtual_hosted_style_request', True or False for virtual or path",
}
"""What stands here for options of other tools that have no equal."""
_SECONDS: Final = frozenset({"timeout", "connect_timeout", "read_timeout"})
_URL: Final = re.compile(r"https?://[^/\s]", re.IGNORECASE)
_CERTIFICATES: Final = frozenset({"root_certificate", "proxy_ca_certificate"})
_FLAGS: Final = frozenset({"anonymous", "allow_http"})
_NESTED: Final = frozenset({"config", "client_options", "client_kwargs"})

_AWS_FILES: Final = {
    "AWS_CONFIG_FILE": "~/.aws/config",
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
}
"""The variables that name the files of the AWS tools, and where these lie else."""
_ENDPOINT_SETTING: Final = "endpoint_url"

_ENDPOINTS: Final = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL",),
}


@final
class StorageOptions:
    """Options of one store, checked, under one name each.

    Neither their text nor their pickle has a secret.
    """

    __slots__ = ("values",)

    values: dict[str, Any]
    """The options by name, among them ``file_system``, an fsspec file system."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = dict(values)

    @property
    def file_system(self) -> Any:
        """The fsspec file system that reads the store; None if another way does."""
        return self.values.get("file_system")

    @property
    def secrets(self) -> list[str]:
        """The texts that no message may have."""
        found = [value for name, value in self.values.items() if name not in PUBLIC_OPTIONS]
        found += [text for value in found if isinstance(value, Mapping) for text in value.values()]
        return [value for value in found if isinstance(value, str) and value]

    def endpoint(self, scheme: str) -> str:
        """Return the endpoint, from the options, the environment or a profile; empty for that of the cloud.

        Raises:
            InvalidArgument: the environment or the profile has one that is not a URL.
        """
        found = self.values.get("endpoint")
        if found is None:
            names = _ENDPOINTS.get(scheme, ())
            name = next((name for name in names if os.environ.get(name)), None)
            if name is not None:
                found = _endpoint(name, os.environ[name])
            elif scheme == "s3":
                found = _endpoint(
                    "endpoint_url of the AWS profile", _profile_endpoint(self.values.get("profile"))
                )
        return str(found or "").rstrip("/")

    def place(self, scheme: str) -> str:
        """Return a text for where the bucket lies: two buckets of one name differ if their places do."""
        if self.file_system is not None:
            kind = type(self.file_system)
            token = getattr(self.file_system, "_fs_token", "")
            return f"fsspec {kind.__module__}.{kind.__qualname__} {token}"
        account = self.values.get("account_name") or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME", "")
        return " ".join([self.endpoint(scheme), *([account] if scheme == "az" and account else [])])

    def without_secrets(self) -> StorageOptions:
        """Return the options that are not secret."""
        kept = {name: value for name, value in self.values.items() if name in PUBLIC_OPTIONS}
        if "endpoint" in kept:
            kept["endpoint"] = shown(str(kept["endpoint"]))
        return StorageOptions(kept)

    def __eq__(self, other: object) -> bool:
        """Return True for options with equal values."""
        return isinstance(other, StorageOptions) and self.values == other.values

    __hash__ = None  # type: ignore[assignment]  # values may be mappings

    def __repr__(self) -> str:
        """Return the names, and the values that are not secret."""
        public = self.without_secrets().values
        texts = (f"{name}={public[name]!r}" if name in public else f"{name}=..." for name in self.values)
        return f"StorageOptions({', '.join(texts)})"

    def __reduce__(self) -> tuple[Callable[[Mapping[str, Any]], StorageOptions], tuple[Mapping[str, Any]]]:
        """Pickle without the secrets."""
        return StorageOptions, (self.without_secrets().values,)


def options_in_words(values: str) -> str:
    """Return what to write to give options to a store: for `sk.open` and the like, and for `sk.kaldi`.

    Args:
        values: the options as a dict, in Python.

    Example:
        >>> options_in_words("{'anonymous': True}")
        "storage=sk.Storage(options={'anonymous': True}) (in sk.kaldi storage_options={'anonymous': True})"
    """
    return f"storage=sk.Storage(options={values}) (in sk.kaldi storage_options={values})"


def checked_options(
    scheme: str, given: Mapping[str, Any] | None, file_system: object = None
) -> StorageOptions:
    """Return the options for addresses of a scheme.

    Args:
        scheme: the scheme, such as ``s3``. The options of a scheme that obstore does not read are arguments
            of its fsspec file system, and are not checked.
        given: the options, by obstore's names, with or without prefix (``aws_region``), or by the usual other
            names, such as ``endpoint_url``, ``anon``, ``key`` and ``secret``. Texts stand for numbers and
            flags too.
        file_system: an fsspec file system, or None.

    Raises:
        InvalidArgument: no such option, the same option twice, or a value that breaks its rule.
        WrongType: the options are not a mapping, or a value has a wrong type.
    """
    if given is not None and not isinstance(given, Mapping):
        message = (
            f"the options of a store must be a mapping of names to values (got a {type(given).__name__})"
        )
        raise WrongType(message)
    if file_system is not None:
        if given:
            message = (
                "the file system and the options of a store exclude each other: give the options to the file "
                "system, where you make it"
            )
            raise InvalidArgument(message)
        return StorageOptions({"file_system": file_system})
    if scheme not in _NAMES:
        return StorageOptions(given or {})
    values: dict[str, Any] = {}
    for name, value in _flat(given or {}):
        known = _canonical(scheme, name)
        if known in values and values[known] != value:
            message = f"the options of a store name {known!r} twice, with different values"
            raise InvalidArgument(message)
        values[known] = _checked_value(known, value)
    if values.get("endpoint") is not None:
        values["endpoint"] = _endpoint("the option 'endpoint' of a store", values["endpoint"]) or None
    return StorageOptions({name: value for name, value in values.items() if value is not None})


def _flat(given: Mapping[str, Any]) -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for name, value in given.items():
        if not isinstance(name, str):
            message = f"the names of the options of a store must be str (got {name!r})"
            raise WrongType(message)
        if name in _NESTED and isinstance(value, Mapping):
            pairs += _flat(value)
        else:
            pairs.append((name, value))
    return pairs


def _canonical(scheme: str, name: str) -> str:
    known = _NAMES[scheme] | _EVERYWHERE | CLIENT_NAMES
    aliases = _ALIASES | _ALIASES_OF.get(scheme, {})
    lower = name.lower()
    for prefix in ("", *_PREFIXES.get(scheme, ())):
        bare = lower.removeprefix(prefix)
        bare = aliases.get(bare, bare)
        if lower.startswith(prefix) and bare in known:
            return bare
    hint = _HINTS.get(lower)
    near = difflib.get_close_matches(lower, [*known, *aliases], n=3)
    if hint is None:
        names = " or ".join(map(repr, near))
        hint = f"did you mean {names}?" if near else f"known are {', '.join(sorted(known))}"
    message = f"a store of {scheme}:// addresses has no option {name!r}: {hint}"
    raise InvalidArgument(message)


def _checked_value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _FLAGS:
        return _flag(name, value)
    if name in _SECONDS:
        return _number(name, str(value).removesuffix("s"), least=0.001)
    if name == "retries":
        return _whole(name, value)
    if name == "headers":
        if not isinstance(value, Mapping):
            what = f"a mapping of names to texts (got a {type(value).__name__})"
            message = f"the option 'headers' of a store must be {what}"
            raise WrongType(message)
        return {str(header): str(text) for header, text in value.items()}
    if name == "credential_provider" and not callable(value):
        message = (
            f"the option 'credential_provider' of a store must be callable (got a {type(value).__name__})"
        )
        raise WrongType(message)
    return _certificate(name, value) if name in _CERTIFICATES else value


def _certificate(name: str, value: object) -> str:
    """Return PEM, or the path of a file with it, as text."""
    text = value.decode("ascii", "replace") if isinstance(value, bytes) else value
    if not isinstance(text, str | os.PathLike):
        message = f"the option {name!r} of a store must be PEM or a path (got a {type(value).__name__})"
        raise WrongType(message)
    return os.fspath(text)


def _endpoint(name: str, value: object) -> str:
    """Return a URL, or an empty text, which stands for the endpoint of the cloud."""
    if not isinstance(value, str):
        raise WrongType(f"{name} must be a text (got a {type(value).__name__})")
    if value and _URL.match(value) is None:
        message = (
            f"{name} must be a URL such as https://minio.example:9000 or http://127.0.0.1:9000 "
            f"(got {value.rpartition('@')[2]!r})"
        )
        raise InvalidArgument(message)
    return value


def _flag(name: str, value: object) -> bool:
    flags = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    found = flags.get(str(value).lower())
    if found is None:
        message = f"the option {name!r} of a store must be True or False (got {value!r})"
        raise InvalidArgument(message)
    return found


def _number(name: str, value: object, *, least: float) -> float:
    try:
        found = float(str(value))
    except ValueError:
        found = -1
    if not least <= found < float("inf"):
        message = f"the option {name!r} of a store must be a number of at least {least} (got {value!r})"
        raise InvalidArgument(message)
    return found


def _whole(name: str, value: object) -> int:
    found = _number(name, value, least=0)
    if found != int(found):
        message = f"the option {name!r} of a store must be a whole number of at least 0 (got {value!r})"
        raise InvalidArgument(message)
    return int(found)


def has_aws_files() -> bool:
    """Return True if this user has files of the AWS tools."""
    return any(os.path.isfile(path) for path in _aws_paths())


def _profile_endpoint(profile: str | None) -> str:
    """Return the endpoint of S3 that a profile sets; empty if it sets none, or none is to be used.

    As for the AWS tools, that of its services counts before that of all services.

    Args:
        profile: the name of the profile; None for that of the environment, else ``default``.
    """
    if os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true":
        return ""
    name = profile or os.environ.get("AWS_PROFILE") or "default"
    for path in _aws_paths():
        try:
            status = os.stat(path)
        except OSError:
            continue
        if found := _endpoint_in(path, name, status.st_mtime_ns, status.st_size):
            return found
    return ""


def _aws_paths() -> list[str]:
    return [os.path.expanduser(os.environ.get(name) or path) for name, path in _AWS_FILES.items()]


@lru_cache(maxsize=16)
def _endpoint_in(path: str, profile: str, _mtime_ns: int, _size: int) -> str:
    """Return the endpoint that a file sets; the file is parsed again only if it was changed."""
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, OSError, UnicodeDecodeError):
        return ""  # Its credentials are looked for by boto3, which says what is wrong.
    for section in (f"profile {profile}", profile):
        if not parser.has_section(section):
            continue
        services = parser.get(section, "services", fallback="")
        own = parser.get(f"services {services}", "s3", fallback="") if services else ""
        nested = dict(line.partition("=")[::2] for line in own.splitlines())
        found = next((value for name, value in nested.items() if name.strip() == _ENDPOINT_SETTING), "")
        found = found.strip() or parser.get(section, _ENDPOINT_SETTING, fallback="").strip()
        if found:
            return found
    return ""
