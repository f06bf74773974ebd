"""The files of the AWS tools in the home folder of this user: what profiles say of endpoints."""

from __future__ import annotations

import configparser
import os
from functools import lru_cache

__all__ = ["has_aws_files", "profile_endpoint"]

_VARIABLES = {"AWS_CONFIG_FILE": "~/.aws/config", "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials"}
_SETTING = "endpoint_url"


def has_aws_files() -> bool:
    """Return True if this user has files of the AWS tools."""
    return any(os.path.isfile(path) for path in _paths())


def profile_endpoint(profile: str | None) -> str:
    """Return the endpoint of S3 that a profile sets; empty if it sets none, or none is to be used.

    As for the AWS tools, that of its services counts before that of all services.

    Args:
        profile: the name of the profile; None for that of the environment, else ``default``.
    """
    if os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() == "true":
        return ""
    name = profile or os.environ.get("AWS_PROFILE") or "default"
    for path in _paths():
        try:
            status = os.stat(path)
        except OSError:
            continue
        if found := _endpoint_in(path, name, status.st_mtime_ns, status.st_size):
            return found
    return ""


def _paths() -> list[str]:
    return [os.path.expanduser(os.environ.get(name) or path) for name, path in _VARIABLES.items()]


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
        found = next((value for name, value in nested.items() if name.strip() == _SETTING), "")
        found = found.strip() or parser.get(section, _SETTING, fallback="").strip()
        if found:
            return found
    return ""
