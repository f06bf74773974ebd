"""A cluster of Slurm on this machine: its controller and two nodes, of Debian's packages, without root."""

from __future__ import annotations

import getpass
import os
import platform
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import final

from tests.remote.servers.debian import unpacked
from tests.remote.servers.process import PATIENCE_SECONDS, ServerProcess, free_port

MISSING = "Slurm is not there: `apt-get download slurmctld` gets nothing"
PACKAGES = ("slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "libhwloc15", "libnuma1")
NODES = ("n1", "n2")
CPUS = 4

CONFIGURATION = """
ClusterName=seekable
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_min_interval=1000,sched_interval=1
MinJobAge=5
KillWait=1
PluginDir={plugins}
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmdSpoolDir={folder}/%n
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def programs() -> str | None:
    """Return the folder of Slurm's packages; None if they cannot be had."""
    return unpacked("slurm", PACKAGES, "usr/sbin/slurmctld-wlm")


@final
class SlurmCluster:
    """A running cluster; ``variables`` make a process submit to it."""

    def __init__(self, slurm: str) -> None:
        libraries = os.path.join(slurm, "usr/lib", f"{platform.machine()}-linux-gnu")
        plugins = os.path.join(libraries, "slurm-wlm")
        self._folder = tempfile.mkdtemp(prefix="seekable-slurm-")
        self.variables = {
            "SLURM_CONF": os.path.join(self._folder, "slurm.conf"),
            "LD_LIBRARY_PATH": f"{libraries}:{plugins}",
            "PATH": f"{slurm}/usr/bin:{os.environ['PATH']}",
        }
        ports = [free_port() for _ in ("", *NODES)]
        nodes = [
            f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 CPUs={CPUS} Port={port}"
            for node, port in zip(NODES, ports[1:], strict=True)
        ]
        configuration = CONFIGURATION.format(
            folder=self._folder,
            plugins=plugins,
            user=getpass.getuser(),
            port=ports[0],
            nodes="\n".join(nodes),
        )
        Path(self.variables["SLURM_CONF"]).write_text(configuration, encoding="utf-8")
        os.mkdir(os.path.join(self._folder, "state"))
        programs = os.path.join(slurm, "usr/sbin")
        stepd = os.path.join(programs, "slurmstepd-wlm")
        commands = [
            [os.path.join(programs, "slurmctld-wlm"), "-D"],
            *([os.path.join(programs, "slurmd-wlm"), "-D", "-N", node, "-d", stepd] for node in NODES),
        ]
        self._servers = [
            ServerProcess.start_on(port, command, variables=self.variables)
            for port, command in zip(ports, commands, strict=True)
        ]

    def stop(self) -> None:
        """End all of it; the processes of elements end before the nodes, which wait for them."""
        self.has_ended()
        for server in reversed(self._servers):
            server.stop()
        shutil.rmtree(self._folder)

    def has_ended(self, job: str = "") -> bool:
        """Wait until no element of a job, or of any, is in the queue; return whether that came in time."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            queue = self._queue()
            if not queue or (job and job not in queue):
                return True
        return False

    def _queue(self) -> list[str]:
        done = subprocess.run(
            ["squeue", "--noheader", "--array", "--format=%F"],
            env={**os.environ, **self.variables},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()
