"""Which packages are there, and which are missing: for ``doctor``."""

from __future__ import annotations

import platform
import re
import sys
import sysconfig
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from seekable._version import __version__
from seekable.cli.findings import Finding, graded

_OURS = "seekable"
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
_NOT_FOR_USERS = frozenset({"all", "dev"})


def version_findings() -> Iterator[Finding]:
    """Yield the versions of seekable, Python and all packages that are used or could be."""
    yield Finding("versions", _OURS, "ok", __version__)
    yield _python()
    try:
        needed = requires(_OURS) or []
    except PackageNotFoundError:
        yield graded(
            "versions", "packages", "seekable is not installed", warn="pip install . in its checkout"
        )
        return
    for extra, name in _packages(needed):
        found = _version(name)
        if extra:
            missing = f"not installed: pip install 'seekable[{extra}]' brings it"
            yield Finding("versions", f"{name} [{extra}]", "ok", found or missing)
        else:
            yield graded(
                "versions", name, found or "not installed", bad="" if found else f"pip install {name}"
            )


def _python() -> Finding:
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    value = f"{platform.python_implementation()} {platform.python_version()}, {platform.system()}"
    if not free_threaded:
        return graded("versions", "python", value)
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    advice = "seekable is tested on builds with the lock"
    return graded("versions", "python", f"{value}, free-threaded, lock {'on' if gil else 'off'}", warn=advice)


def _packages(needed: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the extra ("" for none) and the name of each package that a user may need.

    Example:
        >>> list(_packages(["numpy>=2", "torch>=2; extra == 'torch'", "ruff; extra == 'dev'"]))
        [('', 'numpy'), ('torch', 'torch')]
    """
    for requirement in needed:
        name = _NAME.match(requirement)
        extra = _EXTRA.search(requirement)
        if name and name[0] != _OURS and not (extra and extra[1] in _NOT_FOR_USERS):
            yield extra[1] if extra else "", name[0]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
