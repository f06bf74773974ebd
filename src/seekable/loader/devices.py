"""Batches on the device that trains: a thread copies the next ones there while the loop works on one.

Arrays of numbers and tensors are copied wherever they stand in the dicts, lists and tuples of a batch; all
else stays as it is. A batch is copied after it was made and before it is delivered: it counts as delivered
when the loop has it, so that states know nothing of devices.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np
from msgspec import structs

from seekable._lazy import lazy
from seekable._optional import optional
from seekable.errors import BadValue, InvalidArgument, WrongType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import jax
    import torch
    from numpy.typing import NDArray

    from seekable.loader.batches import MadeBatch
else:
    jax = lazy("jax")
    torch = optional("torch", extra="torch")

__all__ = ["Device", "OnDevice", "Way", "checked_device", "sent_to"]

_NUMBERS = "biufc"
"""The kinds of dtypes that tensors have."""


class Device(Protocol):
    """A device, and the way there."""

    def begin(self) -> Way:
        """Return a way to the device for one run; called in the thread of the training loop."""
        ...


class Way(Protocol):
    """Copies batches to a device, in two steps."""

    def send(self, value: Any) -> Any:
        """Begin to copy a batch; called by a thread that runs ahead.

        Raises:
            BadValue: an array has numbers that the device does not know.
        """
        ...

    def take(self, sent: Any) -> Any:
        """Return a batch that was sent, ready for use by what the calling thread does next."""
        ...


def checked_device(device: object) -> Device | None:
    """Return the ``device=`` of a loader; None for none.

    Raises:
        InvalidArgument: there is no such device here.
        WrongType: it is neither the name of a device, nor one of PyTorch or JAX.
        MissingDependency: PyTorch is not installed.
    """
    if device is None:
        return None
    if isinstance(device, str) or type(device).__module__.partition(".")[0] == "torch":
        return _of_torch(device)
    # Whoever has such an object has imported JAX.
    if "jax" in sys.modules and isinstance(device, jax.Device | jax.sharding.Sharding):
        return _OfJax(device)
    raise WrongType(
        f"device must be a name such as 'cuda' or 'cuda:1', a torch.device, or a jax.Device or a sharding of "
        f"JAX (got {device!r:.100} of type {type(device).__name__})"
    )


def sent_to(way: Way, batches: Iterator[MadeBatch]) -> Iterator[MadeBatch]:
    """Yield batches whose values were sent to a device, for `OnDevice`; when this is closed, close them."""
    try:
        for batch in batches:
            yield structs.replace(batch, value=way.send(batch.value))
    finally:
        close = getattr(batches, "close", None)
        if close is not None:
            close()


@final
class OnDevice:
    """Iterates over batches that were sent to a device, and takes each there when it is asked for.

    Args:
        sent: what `sent_to` yields, or a thread that runs it ahead.
        way: the way on which it was sent.
    """

    def __init__(self, sent: Iterator[MadeBatch], way: Way) -> None:
        self._sent, self._way = sent, way
        self._here: MadeBatch | None = None
        """A batch that was sent, and taken by nobody: an interrupt loses none."""

    def __iter__(self) -> Iterator[MadeBatch]:
        return self

    def __next__(self) -> MadeBatch:
        if self._here is None:
            self._here = next(self._sent)
        batch = structs.replace(self._here, value=self._way.take(self._here.value))
        self._here = None
        return batch

    @property
    def outlives_interrupts(self) -> bool:
        """True if a thread sends the batches."""
        return bool(getattr(self._sent, "outlives_interrupts", False))

    def close(self) -> None:
        """End the batches, and drop those that were sent."""
        self._here = None
        self._sent.close()  # type: ignore[attr-defined]  # a generator, or a thread that runs ahead


def _mapped(value: Any, copy: Callable[[Any], Any]) -> Any:
    """Return a batch with copies of what is in its dicts, lists and tuples."""
    if isinstance(value, dict):
        return {key: _mapped(part, copy) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(part, copy) for part in value))
    if type(value) in (list, tuple):
        return type(value)(_mapped(part, copy) for part in value)
    return copy(value)


def _has_numbers(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in _NUMBERS


# PyTorch


def _of_torch(device: Any) -> Device:
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as error:
        known = str(error).partition("\n")[0]
        raise InvalidArgument(f"device must be one that PyTorch knows (got {device!r}): {known}") from None
    if chosen.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        # Of a large index PyTorch keeps the lowest byte, which may be negative.
        if not 0 <= (chosen.index or 0) < count:
            raise InvalidArgument(
                f"device must be there, and PyTorch sees {count} CUDA devices (got {device!r}): "
                f"torch.cuda.is_available() and torch.cuda.device_count() say what there is"
            )
        return _Cuda(chosen)
    if chosen.type == "meta":
        raise InvalidArgument(f"device must hold data, which {device!r} does not: leave device= out")
    try:
        torch.empty(0, device=chosen)
    except Exception as error:  # noqa: BLE001 - each backend has errors of its own
        why = str(error).partition("\n")[0]
        raise InvalidArgument(f"device must be there (got {device!r}): {why}") from None
    return _Plain(chosen)


def _torch_dtype(array: NDArray[Any]) -> torch.dtype:
    """Return the dtype of a tensor for an array.

    Raises:
        BadValue: PyTorch has none.
    """
    try:
        return torch.from_numpy(np.empty(0, array.dtype.newbyteorder("="))).dtype
    except TypeError:
        message = (
            f"PyTorch has no dtype {array.dtype}, which a batch has: map it to another, or leave device= out"
        )
        raise BadValue(message) from None


@final
@dataclass(frozen=True, slots=True)
class _Plain:
    """A device of PyTorch without streams that are known here, such as the CPU: plain copies."""

    device: torch.device

    def begin(self) -> Way:
        return self

    def send(self, value: Any) -> Any:
        return _mapped(value, self._copy)

    def take(self, sent: Any) -> Any:
        return sent

    def _copy(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(self.device, copy=True)
        if not _has_numbers(value):
            return value
        copied = torch.empty(value.shape, dtype=_torch_dtype(value))
        copied.numpy()[...] = value
        return copied.to(self.device)

    def __str__(self) -> str:
        return str(self.device)


@final
@dataclass(frozen=True, slots=True)
class _Cuda:
    """A device of CUDA, or of ROCm, which PyTorch calls so."""

    device: torch.device

    def begin(self) -> Way:
        # The current device is one of the thread: that of the training loop counts.
        index = torch.cuda.current_device() if self.device.index is None else self.device.index
        return _SideStream(torch.device("cuda", index))

    def __str__(self) -> str:
        return str(self.device)


@dataclass(frozen=True, slots=True)
class _Sent:
    """A batch on its way."""

    value: Any
    arrived: Any
    """The event after the copies."""
    tensors: list[Any]
    """Those that were copied."""


@final
class _SideStream:
    """Copies from pinned memory on a stream of its own, beside the work of the training loop."""

    def __init__(self, device: torch.device) -> None:
        self._device, self._stream = device, torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # of torch

    def send(self, value: Any) -> _Sent:
        tensors: list[Any] = []

        def copy(part: Any) -> Any:
            if isinstance(part, torch.Tensor):
                pinned = part if part.is_cuda or part.is_pinned() else part.pin_memory()
            elif _has_numbers(part):
                pinned = torch.empty(part.shape, dtype=_torch_dtype(part), pin_memory=True)
                pinned.numpy()[...] = part
            else:
                return part
            # The allocator of pinned memory keeps these bytes until the copy is over.
            tensors.append(pinned.to(self._device, non_blocking=True))
            return tensors[-1]

        with torch.cuda.stream(self._stream):
            return _Sent(_mapped(value, copy), self._stream.record_event(), tensors)

    def take(self, sent: _Sent) -> Any:
        stream = torch.cuda.current_stream(self._device)
        stream.wait_event(sent.arrived)
        for tensor in sent.tensors:
            # Its memory belongs to the side stream, which must not use it again before this stream has.
            tensor.record_stream(stream)
        return sent.value


# JAX


@final
@dataclass(frozen=True, slots=True)
class _OfJax:
    """A device of JAX, or a sharding over several."""

    device: Any

    def begin(self) -> Way:
        return self

    def send(self, value: Any) -> Any:
        return _mapped(value, self._copy)

    def take(self, sent: Any) -> Any:
        return sent

    def _copy(self, value: Any) -> Any:
        if isinstance(value, jax.Array):
            return jax.device_put(value, self.device)
        if not _has_numbers(value):
            return value
        _check_range(value, jax.dtypes.canonicalize_dtype(value.dtype))
        # On a CPU, JAX may go on to use the memory of the array: it gets one that nobody else has.
        copied = np.array(value, dtype=value.dtype.newbyteorder("="))
        if isinstance(self.device, jax.Device):
            return jax.device_put(copied, self.device)
        try:
            return jax.make_array_from_process_local_data(self.device, copied)
        except ValueError as error:
            why = str(error).partition("\n")[0]
            raise BadValue(f"an array of shape {copied.shape} does not fit {self.device}: {why}") from error

    def __str__(self) -> str:
        return str(self.device)


def _check_range(array: NDArray[Any], narrowed: np.dtype[Any]) -> None:
    """Check that integers are the same in the dtype that JAX gives them, of 32 bits unless it is told.

    Raises:
        BadValue: they are not.
    """
    if narrowed == array.dtype or array.dtype.kind not in "iu" or not array.size:
        return
    bounds = np.iinfo(narrowed)
    if int(array.min()) < bounds.min or int(array.max()) > bounds.max:
        raise BadValue(
            f"a batch has {array.dtype} numbers beyond {narrowed}, which JAX makes of them: "
            f"jax.config.update('jax_enable_x64', True) keeps 64 bits"
        )
