"""Stops that are announced: all ranks end after one step, and the state of that step is saved.

Signals reach ranks at different steps, or only one of them, and ranks that exchange gradients wait for each
other. So the rank that hears first writes into the folder of the states at which step all stop, and each rank
looks there between steps. Ranks in step are at most one step apart: whoever has not looked at the step at
which the file was written looks at the next one, and the run stops at the step after that.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import secrets
import signal
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, final

from seekable._arguments import checked_count, checked_seconds, explains_keywords
from seekable._log import LOG
from seekable._other_words import STORAGE
from seekable.errors import InvalidArgument, WrongType
from seekable.loader.arguments import rank_around
from seekable.loader.checkpoints import save_state
from seekable.loader.positioned import loader_of
from seekable.state.canonical import canonical_json
from seekable.storage.addresses import is_address
from seekable.storage.files import TEMPORARY_SUFFIX, create_new
from seekable.storage.paths import output_of, output_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType, TracebackType

    from seekable.loader.checkpoints import Stateful
    from seekable.storage.access import Storage

__all__ = ["Stop", "preemption"]

_NAME = "stop.json"

_SIGNALS = (signal.SIGTERM, signal.SIGUSR1)
_UNHEARD = frozenset({signal.SIGKILL, signal.SIGSTOP})
"""The signals that no process hears."""

_AHEAD = 2
"""Steps from the one at which a stop is written to the stop; see the head of this module."""

_DEADLINE = "the deadline"

_UNANSWERED: list[str] = []
"""Signals that came too late for a ``with`` to stop: the next one of this process stops by them."""


@explains_keywords(STORAGE)
def preemption(
    loader: Stateful,
    folder: str | os.PathLike[str],
    *,
    deadline: float | datetime | None = None,
    every: int = 1,
    signals: Iterable[int] = _SIGNALS,
    keep: int = 3,
    storage: Storage | None = None,
) -> Stop:
    """Return a context manager that is true once to stop, at one step on all ranks; it saves the state.

    Ask ``if stop:`` after each training step, on every rank. Where it is true, save the model under a name
    with ``loader.step``, and leave the ``with``: there the state is saved, so that a state is never found
    without its model. An error that leaves the ``with`` saves no state; ``sys.exit()`` after a stop does.

    Inside of the ``with`` the signals only ask for a stop, also a second one, and one while the state is
    saved. The handlers that were there before are not called, and come back at its end. Ranks must be in
    step, as the exchange of gradients makes them; one that is past the step says so in the log.

    Args:
        loader: a ``sk.Loader`` or a ``BatchSampler``.
        folder: the folder of the states, as of ``sk.save_state``, which all ranks see. Ranks agree by its
            file ``stop.json``; one of an earlier run is removed where the ``with`` begins.
        deadline: when to stop without a signal: after some seconds from the start of the ``with``, or at a
            moment, a ``datetime`` (of local time, where it has no time zone).
        every: the steps between two looks into the folder; the run stops at a multiple of them. Give the
            batches of a step of the optimizer, where it takes several; or more where a look takes long.
        signals: the signals that ask for a stop: ``SIGTERM`` and ``SIGUSR1``; none with ``()``.
        keep: as of ``sk.save_state``.
        storage: how the store is reached, ``sk.Storage(options=...)``.

    Returns:
        A ``Stop``.

    Raises:
        InvalidArgument: an argument breaks a rule; or signals are to be heard in another thread than the main
            one, which alone hears them in Python.
        WrongType: ``loader`` is not a loader, or an argument has a wrong type.

    Example:
        >>> import os, signal, tempfile, seekable as sk
        >>> loader = sk.Loader(sk.from_sequence(range(100)), batch_size=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with sk.preemption(loader, folder) as stop:
        ...         for batch in loader:
        ...             if loader.step == 3:
        ...                 os.kill(os.getpid(), signal.SIGTERM)  # as clusters do
        ...             if stop:
        ...                 break  # after saving the model
        ...     again = sk.Loader(sk.from_sequence(range(100)), batch_size=2)
        ...     found = sk.load_state(folder, again)
        >>> stop.reason, again.step
        ('SIGTERM on rank 0', 3)
    """
    loader_of(loader)
    return Stop(
        loader,
        output_path(folder, storage),
        deadline=_checked_deadline(deadline),
        every=checked_count("every", every, least=1),
        signals=_checked_signals(signals),
        saving={"keep": checked_count("keep", keep, least=1), "storage": storage},
    )


@final
class Stop:
    """True once a run is to stop; see ``sk.preemption``."""

    def __init__(
        self,
        loader: Stateful,
        folder: str,
        *,
        deadline: float | datetime | None,
        every: int,
        signals: Sequence[signal.Signals],
        saving: Mapping[str, Any],
    ) -> None:
        self._loader, self._folder, self._saving = loader, folder, saving
        self._deadline, self._every, self._signals = deadline, every, signals
        # Processes that share the records of one rank, as in tensor parallelism, have to agree too.
        self._alone = loader.world_size == rank_around()[1] == 1
        self._agreement = _Agreement(folder)
        self._handlers: dict[signal.Signals, Any] = {}
        self._process = 0
        self._until = math.inf
        self._heard: str | None = None
        self._looks_at = 0
        """The step from which on the folder is looked into again."""
        self._at: _StopAt | None = None
        self._asked = self._stopped = False
        self._saved: str | None = None

    @property
    def reason(self) -> str | None:
        """What asked for the stop, and on which rank: ``"SIGTERM on rank 3"``; None before."""
        return None if self._at is None else f"{self._at.heard} on rank {self._at.rank}"

    @property
    def saved(self) -> str | None:
        """The path of the state of this rank, once it is saved at the end of the ``with``; None before."""
        return self._saved

    def __enter__(self) -> Self:
        if self._signals and threading.current_thread() is not threading.main_thread():
            raise InvalidArgument(
                f"signals are heard in the main thread alone (this is {threading.current_thread().name!r}): "
                f"begin the with there, or give signals=(), and a deadline= or a rank that hears signals"
            )
        self._process = os.getpid()
        self._until = _until(self._deadline)
        output_of(self._folder).make_folder(self._folder)  # Models may be saved there first.
        if not self._alone:
            # No rank can have written one of this run: it would have made a step with all others.
            self._agreement.clear()
        if _UNANSWERED:
            self._heard = _UNANSWERED.pop()
        for number in self._signals:
            self._handlers[number] = signal.signal(number, self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() != self._process:
            return  # The handlers and the state are those of the process that this one was forked from.
        try:
            if self._stopped and (kind is None or issubclass(kind, SystemExit)):
                self._saved = save_state(self._folder, self._loader, **self._saving)
        finally:
            for number, handler in self._handlers.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
            self._process = 0
        if self._heard and not self._stopped:
            why = "came too late for this run to stop" if self._asked else "was not seen: write `if stop:`"
            LOG.warning("%s %s, and no state was saved", self._heard, why)
            if self._heard != _DEADLINE:
                _UNANSWERED.append(self._heard)

    def __bool__(self) -> bool:
        """Return True once to stop: ask after each training step."""
        if os.getpid() != self._process:
            return self._stopped  # Outside of the with, or in a forked child.
        self._asked = True
        step = self._loader.step
        if self._at is None and (self._alone or step >= self._looks_at):
            self._looks_at = self._multiple(step + 1)
            self._at = self._alone_at(step) if self._alone else self._agreed(step)
        if self._at is not None and not self._stopped and step >= self._at.step:
            self._stopped = True
            if step > self._at.step:
                LOG.warning(
                    "rank %d is at step %d, past the stop at step %d (%s), so that its state is saved at "
                    "another step than those of ranks in step",
                    *(self._loader.rank, step, self._at.step, self.reason),
                )
        return self._stopped

    def _alone_at(self, step: int) -> _StopAt | None:
        """Return the step at which the only process of a run stops, if it is to stop."""
        heard = self._reason_to_stop()
        if heard is None:
            return None
        at = _StopAt(self._multiple(step), self._loader.rank, heard)
        LOG.warning("%s at step %d: the run stops at step %d", heard, step, at.step)
        return at

    def _agreed(self, step: int) -> _StopAt | None:
        """Return the step at which all ranks stop, if one of them is to stop."""
        found, heard, rank = self._agreement.found(), self._reason_to_stop(), self._loader.rank
        if found is None and heard is not None:
            found = self._agreement.proposed(_StopAt(self._multiple(step + _AHEAD), rank, heard))
        if found is not None:
            level = logging.WARNING if found.rank == rank else logging.INFO
            LOG.log(level, "%s on rank %d: the run stops at step %d", found.heard, found.rank, found.step)
        return found

    def _reason_to_stop(self) -> str | None:
        if self._heard is None and time.monotonic() >= self._until:
            self._heard = _DEADLINE
        return self._heard

    def _multiple(self, step: int) -> int:
        """Return the next multiple of ``every`` from a step on."""
        return -(-step // self._every) * self._every

    def _hear(self, number: int, frame: FrameType | None) -> None:
        """Note a signal. A forked child, which has this handler too, has to end by SIGTERM all the same."""
        heard = signal.Signals(number)
        if os.getpid() == self._process:
            self._heard = self._heard or heard.name
        elif heard == signal.SIGTERM:
            signal.signal(heard, signal.SIG_DFL)
            os.kill(os.getpid(), heard)


@dataclass(frozen=True, slots=True)
class _StopAt:
    """A stop that ranks agree on, as it is written."""

    step: int
    """The step after which all stop."""
    rank: int
    """The rank that heard first."""
    heard: str
    """What it heard."""


@final
class _Agreement:
    """The stop that the ranks of a run agree on: a file, which the first rank that writes it decides.

    A folder that cannot be read or written for the moment ends no training: the next look comes soon.
    """

    def __init__(self, folder: str) -> None:
        self._folder, self._path = folder, os.path.join(folder, _NAME)
        self._is_local = not is_address(folder)

    def clear(self) -> None:
        """Remove the stop of an earlier run."""
        output_of(self._path).delete(self._path)

    def found(self) -> _StopAt | None:
        """Return the stop, if there is one that is written to its end."""
        try:
            if not self._is_there():
                return None
            document = json.loads(output_of(self._path).read(self._path))
            return _StopAt(int(document["step"]), int(document["rank"]), str(document["heard"]))
        except FileNotFoundError:
            return None
        except OSError as error:
            LOG.warning("could not look for a stop of the other ranks in %s: %s", self._folder, error)
        except (ValueError, KeyError, TypeError):
            pass  # Where links are not known, it is written in its place.
        return None

    def proposed(self, stop: _StopAt) -> _StopAt | None:
        """Write a stop, unless there is one, and return the one that is there."""
        data = canonical_json({"step": stop.step, "rank": stop.rank, "heard": stop.heard})
        try:
            if self._is_local:
                _write_new(self._path, data)
            else:
                output_of(self._path).replace(self._path, data, old=None)
        except FileExistsError:
            pass
        except OSError as error:
            LOG.warning("could not write a stop for the other ranks into %s: %s", self._folder, error)
        return self.found()

    def _is_there(self) -> bool:
        if not self._is_local:
            return output_of(self._path).size(self._path) is not None
        # To open a folder makes a client of NFS ask its server; it may answer a stat alone from its cache,
        # for up to a minute.
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.stat(_NAME, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        return True


def _write_new(path: str, data: bytes) -> None:
    """Write a file that appears whole, unless one of that name is there.

    Raises:
        FileExistsError: there is one.
        OSError: the folder cannot be written.
    """
    temporary = f"{path}.{secrets.token_hex(8)}{TEMPORARY_SUFFIX}"
    try:
        with create_new(temporary) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:
            # A file system without links. Whoever sees a part of these bytes looks again after its next step.
            with create_new(path) as file:
                file.write(data)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _until(deadline: float | datetime | None) -> float:
    """Return a deadline on the clock of ``time.monotonic``."""
    if deadline is None:
        return math.inf
    left = deadline.timestamp() - time.time() if isinstance(deadline, datetime) else deadline
    return time.monotonic() + left


def _checked_signals(signals: object) -> tuple[signal.Signals, ...]:
    """Return the signals to hear.

    Raises:
        WrongType: they are no list of signals.
        InvalidArgument: the system has no such signal, or none hears it.
    """
    if isinstance(signals, str | bytes) or not isinstance(signals, Iterable):
        raise WrongType(f"signals must be a list such as [signal.SIGTERM] (got {signals!r})")
    checked = []
    for number in signals:
        if isinstance(number, bool) or not isinstance(number, int):
            raise WrongType(f"signals must be numbers such as signal.SIGTERM (got {number!r})")
        try:
            checked.append(signal.Signals(number))
        except ValueError:
            raise InvalidArgument(f"signals must be those of this system (got {number})") from None
        if checked[-1] in _UNHEARD:
            raise InvalidArgument(f"signals must be ones that a process hears (got {checked[-1].name})")
    return tuple(dict.fromkeys(checked))


def _checked_deadline(deadline: object) -> float | datetime | None:
    """Return a deadline, a moment or some seconds from the start.

    Raises:
        WrongType: it is neither.
        InvalidArgument: the seconds are not above 0.
    """
    if isinstance(deadline, datetime):
        return deadline
    if deadline is not None and (isinstance(deadline, bool) or not isinstance(deadline, int | float)):
        raise WrongType(f"deadline must be a number of seconds, or a datetime (got {deadline!r})")
    return checked_seconds("deadline", deadline)
