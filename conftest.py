"""What holds for every test: examples, markers by folder, and guards between tests.

docs/design/testing.md says which proof belongs to which command; tests/run.py runs the commands.
"""

from __future__ import annotations

import functools
import gc
import os
import shutil
import sys
import tempfile
import traceback
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

# The pages of the docs use the cluster of the tests; workers are forks; `make budget` measures; test_plugs.py
# hides subjects.
pytest_plugins = ["tests.integrations.ray_fixtures", "tests.warm_workers"]
if "SEEKABLE_SECONDS" in os.environ:
    pytest_plugins.append("tests.seconds")
if "SEEKABLE_ALONE" in os.environ:
    pytest_plugins.append("tests.plugs")

# Modules beside the tests, and the suites for users, assert as tests do: values are printed, also under `-O`.
pytest.register_assert_rewrite("tests", "seekable.testing")

# What lies beside the tests is rewritten from here on.
from tests import profiles  # noqa: E402, F401 - registers those of Hypothesis
from tests.frameworks import framework_of, marker_name  # noqa: E402


def pytest_configure(config: pytest.Config) -> None:
    """Keep what tests fetch from stores out of the user's cache: a session has a folder of its own."""
    if "SEEKABLE_REMOTE_DIR" not in os.environ:
        folder = tempfile.mkdtemp(prefix="seekable-remote-")
        os.environ["SEEKABLE_REMOTE_DIR"] = folder
        config.add_cleanup(functools.partial(shutil.rmtree, folder, ignore_errors=True))


def marker_of(path: Path) -> pytest.MarkDecorator | None:
    """Return the marker of all tests in a file, or None."""
    if framework := framework_of(path):
        return pytest.mark.frameworks(name=framework)
    name = marker_name(path)
    return None if name is None else getattr(pytest.mark, name)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files of a folder unread that no chosen test is in: what they import may not be installed."""
    name = marker_name(collection_path)
    return True if name is not None and f"not {name}" in config.option.markexpr else None


# First, because the markers decide which items -m deselects.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of a file."""
    for item in items:
        if marker := marker_of(item.path):
            item.add_marker(marker)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without the garbage collector, which finds little, then and later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(10_000, 20, 20)


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Keep the garbage collector from running, for tests that go to the limit of recursion.

    There each finalizer that it calls fails, and pytest makes an error of that.
    """
    gc.disable()
    yield
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Take back the limit of the cache that ``sk.open(cache=)`` sets for a process: later tests have none."""
    before = os.environ.get("SEEKABLE_REMOTE_BYTES")
    try:
        return (yield)
    finally:
        os.environ.pop("SEEKABLE_REMOTE_BYTES", None)
        if before is not None:
            os.environ["SEEKABLE_REMOTE_BYTES"] = before


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call() -> Iterator[None]:
    """End a fork that comes back from its test, by an error: it would run all tests that follow."""
    process = os.getpid()
    try:
        return (yield)
    finally:
        if os.getpid() != process:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Fail a test that leaves another working folder behind: later tests start processes in this one."""
    yield
    folder = item.config.invocation_params.dir
    if not os.path.samefile(folder, "."):
        os.chdir(folder)
        pytest.fail("the test changed the working folder: call monkeypatch.chdir")
