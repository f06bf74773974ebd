"""Which tests a command runs: markers, the groups of ``--dist=loadgroup``, and the set for ``python -O``.

docs/design/testing.md says which proof belongs to which command.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import os
import shutil
import sys
import tempfile
import traceback
from typing import TYPE_CHECKING

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings
from xdist.scheduler.loadgroup import LoadGroupScheduling

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

FRAMEWORKS = frozenset(
    {
        *("accelerate", "dask", "grain", "jax", "lhotse", "lightning", "ray", "slurm", "streaming", "torch"),
        *("transformers", "webdataset"),
    }
)

EXPECTS = "pytest.raises"

# The pages of the docs use the cluster of the tests.
pytest_plugins = ("tests.integrations.ray_fixtures",)

# Modules beside the tests, and the suites for users, assert as tests do: values are printed, also under `-O`.
pytest.register_assert_rewrite("tests", "seekable.testing")

# The same examples on every run; other ones in `make fuzz`.
settings.register_profile("tests", settings.get_profile("ci"), max_examples=25)
settings.register_profile(
    "fuzz",
    max_examples=int(os.environ.get("SEEKABLE_FUZZ_EXAMPLES", "100")),
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def pytest_configure(config: pytest.Config) -> None:
    """Keep what tests fetch from stores out of the user's cache: a session has a folder of its own."""
    if "SEEKABLE_REMOTE_DIR" not in os.environ:
        folder = tempfile.mkdtemp(prefix="seekable-remote-")
        os.environ["SEEKABLE_REMOTE_DIR"] = folder
        config.add_cleanup(functools.partial(shutil.rmtree, folder, ignore_errors=True))


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


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Import a module with doctests by its name, which pytest then finds imported.

    By itself it executes a module that its package imports a second time, and leaves two of each class.
    """
    sources = collector.config.rootpath / "src"
    if isinstance(collector, DoctestModule) and collector.path.is_relative_to(sources):
        name = ".".join(collector.path.relative_to(sources).with_suffix("").parts)
        importlib.import_module(name.removesuffix(".__init__"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without the garbage collector: a quarter of the time was its own, and little is garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through thousands of collected tests, and from coming often."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def marker_of(path: Path) -> pytest.MarkDecorator | None:
    """Return the marker of all tests in a file, or None.

    A module of a folder ``integrations`` whose name begins with a framework imports that framework. So does a
    module of a package there that has its name, and a module ``test_from_<framework>.py`` of ``tests/docs``.
    """
    folder = path.parent.name
    prefix = "test_from_" if folder == "docs" else "test_"
    name = path.stem.removeprefix(prefix).partition("_")[0]
    if path.parent.parent.name == "integrations":
        folder, name = "integrations", folder  # a package for one framework
    if folder in {"integrations", "docs"} and name in FRAMEWORKS:
        return pytest.mark.frameworks(name)
    folders = {"benchmarks": pytest.mark.bench, "examples": pytest.mark.demo}
    return folders.get(folder)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files unread that no chosen test is in: what they import takes seconds, or is not installed."""
    marker = marker_of(collection_path)
    is_deselected = marker is not None and f"not {marker.name}" in config.option.markexpr
    return True if is_deselected or not _may_have_tests(collection_path) else None


def _may_have_tests(path: Path) -> bool:
    """Return False for a module without tests and doctests; under ``-O``, for one that expects no error."""
    if path.suffix != ".py":
        return True
    text = path.read_text(encoding="utf-8")
    if not __debug__:
        return EXPECTS in text
    return path.name.startswith("test_") or ">>>" in text


class GroupScheduling(LoadGroupScheduling):  # type: ignore[misc]  # has no types
    """Gives all tests of a demo to one process: their fixture is the whole demo.

    Groups of markers would be a part of the names of tests, but plugins cannot change names since pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return path if "/examples/" in path else super()._split_scope(nodeid)

    def remove_node(self, node: WorkerController) -> str | None:
        """Give the tests that a crashed process left to others, and return the one that it crashed in.

        xdist 3.8 hands out its finished groups again, and a process waits for ever for the end of such a
        group. It repeats the crash, too.
        """
        groups = self.assigned_work.pop(node)
        left = [(group, test) for group in groups.values() for test, is_done in group.items() if not is_done]
        if not left:
            return None
        group, crashed = left[0]
        group[crashed] = True
        self.workqueue.update((name, group) for name, group in groups.items() if not all(group.values()))
        for other in self.nodes:
            self._reschedule(other)
        return str(crashed)

    def _reschedule(self, node: WorkerController) -> None:
        # A process in the place of a crashed one has no tests before it has collected them.
        if node in self.registered_collections:
            super()._reschedule(node)

    def schedule(self) -> None:
        """Give each process at least two groups: it runs a test when it has the next one, or none is left."""
        super().schedule()
        for node in self.nodes:
            self._reschedule(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupScheduling | None:
    """Return the scheduler of ``--dist=loadgroup``."""
    return GroupScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


# Of each test, `make check` runs one case in so many.
_TURNS = {"exhaustive": 24, "frameworks": 5}
_OPTIMIZED_TURNS = 8

_DEMO_SECONDS = 1800
"""The time after which a test of a demo counts as hanging: it is a fixture that runs the whole demo."""


def in_turns(items: list[pytest.Item], turns: int) -> list[pytest.Item]:
    """Return some cases of each test: with 4 turns the first, the fifth and so on."""
    cases: dict[str, int] = {}
    kept = []
    for item in items:
        name = item.nodeid.partition("[")[0]
        number = cases[name] = cases.get(name, -1) + 1
        if number % turns == 0:
            kept.append(item)
    return kept


# First, because the markers decide which items -m deselects.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests, and give each framework one process; under ``-O`` keep the tests that expect errors."""
    for item in items:
        if marker := marker_of(item.path):
            item.add_marker(marker)
        if item.get_closest_marker("demo"):
            item.add_marker(pytest.mark.timeout(_DEMO_SECONDS))
        framework = item.get_closest_marker("frameworks")
        if framework is not None and framework.args:
            item.add_marker(pytest.mark.xdist_group(framework.args[0]))
    if "SEEKABLE_THRIFTY_TESTS" in os.environ:
        for name, turns in _TURNS.items():
            # The pages of the docs are cases of one test, and each of them is shown to users.
            cases = [item for item in items if item.path.name != "test_docs.py"]
            marked = [item for item in cases if item.get_closest_marker(name)]
            left_out = set(marked) - set(in_turns(marked, turns))
            _keep(config, items, [item for item in items if item not in left_out])
    if not __debug__:
        expecting = [item for item in items if _expects_an_error(item)]
        _keep(config, items, in_turns(expecting, _OPTIMIZED_TURNS))


def _keep(config: pytest.Config, items: list[pytest.Item], kept: list[pytest.Item]) -> None:
    """Deselect all items but those that are kept."""
    chosen = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = kept


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


def _expects_an_error(item: pytest.Item) -> bool:
    """Return True for a test function that contains ``pytest.raises``."""
    function = getattr(item, "function", None)
    return function is not None and _names_an_error(function)


@functools.cache
def _names_an_error(function: Callable[..., object]) -> bool:
    """Return True if a function contains ``pytest.raises``; the cases of one function ask once."""
    return EXPECTS in inspect.getsource(function)
