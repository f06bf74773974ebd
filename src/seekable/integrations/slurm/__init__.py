"""`SlurmExecutor`: the elements of a Slurm job array are the workers of an executor.

``sbatch`` starts the array, and each element connects to this process by TCP. Both sides prove that they
have the key of the executor, which is random and new each time. The key travels in the batch script, which
only the user and the administrators of Slurm can read: it is in no command line, no environment and no file
of ours. Nothing is encrypted after that, so the network of the cluster must be one that the user trusts.

An element answers one request after the other. It ends when this process closes the connection or dies, and
``scancel`` takes the rest of the array off the queue: there is no daemon.
"""

from seekable.integrations.slurm.slurm_executor import SlurmExecutor

__all__ = ["SlurmExecutor"]
