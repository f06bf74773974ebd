"""A Ray cluster of several nodes on this machine, in a process of its own that ends with its parent.

The head has no processors, so all work is done on the nodes that a test adds and kills. As a program, this
file starts the cluster, and then does what each line of its standard input says, until that ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Self

STORE_BYTES = 80 << 20
"""The object store of each node; Ray takes no less."""

ENVIRONMENT = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else each connection warns of a change to come
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_TRAIN_V2_ENABLED": "1",
}
"""The variables of the cluster, and of a process that connects to it."""

HEALTH_CHECKS = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 300,
    "health_check_failure_threshold": 3,
}
"""A killed node refuses connections: it counts as dead after a second. A slow one has as long as ever."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder that one node alone sees in the place of another folder."""

    folder: str
    """What the node sees."""

    over: str
    """Where it sees it."""


class RayCluster:
    """A cluster of Ray; a context manager that ends it.

    Nodes are named by Ray's identifiers, in hexadecimal digits.
    """

    def __init__(self, *, nodes: int = 2, num_cpus: float = 1) -> None:
        """Start the cluster.

        Args:
            nodes: the number of nodes beside the head.
            num_cpus: the processors that each of them is said to have.
        """
        self._folder = tempfile.mkdtemp(prefix="r-", dir="/tmp")  # A socket's path has at most 107 bytes.
        self._process = subprocess.Popen(
            [sys.executable, "-P", os.path.abspath(__file__), self._folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Not in Ray's own folder, where other programs of this machine look for a cluster to join.
            env=os.environ | ENVIRONMENT | {"RAY_TMPDIR": self._folder},
            process_group=0,
        )
        self._num_cpus = num_cpus
        self.nodes: list[str] = []
        """The nodes that are alive, without the head."""
        self.address: str = self._answer()
        """The address for ``ray.init``."""
        for _ in range(nodes):
            self.add_node()

    @property
    def folder(self) -> str:
        """The folder with the files and logs of the cluster."""
        return self._folder

    def add_node(
        self,
        *,
        num_cpus: float | None = None,
        resources: dict[str, float] | None = None,
        mount: Mount | None = None,
    ) -> str:
        """Start a node, and return its name once the cluster has it.

        Args:
            num_cpus: the processors that it is said to have.
            resources: what else it is said to have.
            mount: what it alone sees in the place of a folder.

        Raises:
            PermissionError: this process may not mount anything.
        """
        given = {"num_cpus": self._num_cpus if num_cpus is None else num_cpus, "resources": resources or {}}
        seen = None if mount is None else [mount.folder, mount.over]
        node: str = self._ask("add", given, seen)
        self.nodes.append(node)
        return node

    def kill_node(self, node: str) -> None:
        """End all processes of a node by SIGKILL, as if its machine were switched off."""
        self._ask("kill", node)
        self.nodes.remove(node)

    def restore(self, nodes: int = 2) -> None:
        """Start as many nodes as are missing, and wait until killed ones count as dead."""
        while len(self.nodes) < nodes:
            self.add_node()
        self._ask("settle")

    def close(self) -> None:
        """End the cluster, and remove its files."""
        if self._process.poll() is None and self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, *order: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the cluster ended with exit status {self._process.wait()}"
        answer = json.loads(line)
        if "denied" in answer:
            raise PermissionError(answer["denied"])
        return answer["value"]


def serve(folder: str, orders: IO[bytes], answer: Callable[[dict[str, Any]], None]) -> None:
    """Start a cluster, do what each line says, and end the cluster."""
    import ray.cluster_utils

    folder = os.path.join(folder, "ray")
    os.mkdir(folder)
    cluster = ray.cluster_utils.Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0,
            "object_store_memory": STORE_BYTES,
            "include_dashboard": False,
            "temp_dir": folder,
            "_system_config": HEALTH_CHECKS,
        },
    )
    nodes: dict[str, Any] = {}
    answer({"value": cluster.address})
    for line in orders:
        action, *given = json.loads(line)
        if action in {"kill", "settle"}:
            _kill(cluster, nodes.pop(given[0])) if given else cluster.wait_for_nodes()
            answer({"value": None})
            continue
        try:
            node = _add(cluster, *given)
        except PermissionError as error:
            answer({"denied": str(error)})
            continue
        nodes[node.node_id] = node
        answer({"value": node.node_id})
    cluster.shutdown()


def _add(cluster: Any, given: dict[str, Any], mount: list[str] | None) -> Any:
    """Start a node; its processes keep what this one sees while they start."""
    with nullcontext() if mount is None else _mounted(*mount):
        return cluster.add_node(object_store_memory=STORE_BYTES, **given)


_CLONE_NEWNS, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x20000, 0x1000, 0x4000, 1 << 18


@contextmanager
def _mounted(folder: str, over: str) -> Iterator[None]:
    """Show a folder in the place of another one, to this thread and to the processes that it starts."""
    libc = ctypes.CDLL(None, use_errno=True)

    def check(failed: int) -> None:
        if failed:
            number = ctypes.get_errno()
            raise PermissionError(number, f"cannot mount: {os.strerror(number)}")

    check(libc.unshare(_CLONE_NEWNS))
    check(libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None))
    check(libc.mount(os.fsencode(folder), os.fsencode(over), None, _MS_BIND, None))
    yield
    # Not back to the namespace of before, which takes a thread that shares nothing with others.
    check(libc.unshare(_CLONE_NEWNS))
    check(libc.umount(os.fsencode(over)))


def _kill(cluster: Any, node: Any) -> None:
    """Kill a node's processes and their children: the workers would otherwise go on for a moment."""
    import psutil  # type: ignore[import-untyped,unused-ignore]

    own = [process.process for kind in node.all_processes.values() for process in kind]
    children = []
    for process in own:
        with suppress(psutil.NoSuchProcess):
            children += psutil.Process(process.pid).children(recursive=True)
    for pid in (*(process.pid for process in own), *(child.pid for child in children)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    cluster.remove_node(node, allow_graceful=False)


def main() -> None:
    """Run a cluster for the parent process."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(given: dict[str, Any]) -> None:
        print(json.dumps(given), file=answers, flush=True)

    serve(sys.argv[1], sys.stdin.buffer, answer)


if __name__ == "__main__":
    main()
