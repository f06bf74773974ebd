"""Tensors of torch in messages: sent as arrays, large ones without a copy."""

from __future__ import annotations

import copyreg
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["reducers"]


def reducers() -> Mapping[type, Callable[[Any], Any]]:
    """Return the reducers for pickling, those of torch tensors too if torch is imported already.

    Example:
        >>> set(reducers()) >= set(copyreg.dispatch_table)
        True
    """
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return copyreg.dispatch_table if tensor is None else {**copyreg.dispatch_table, tensor: _reduced}


def _reduced(tensor: Any) -> Any:
    import torch

    is_plain = tensor.device.type == "cpu" and tensor.layout is torch.strided and not tensor.requires_grad
    if not is_plain or tensor.is_nested or tensor.is_quantized or tensor.is_conj() or tensor.is_neg():
        return tensor.__reduce_ex__(5)
    # As bytes, because torch has types of numbers that numpy has not.
    data = tensor.contiguous().reshape(-1).view(torch.uint8).numpy()
    return _tensor, (data, tensor.dtype, tuple(tensor.shape))


def _tensor(data: NDArray[np.uint8], dtype: Any, shape: tuple[int, ...]) -> Any:
    import torch

    return torch.from_numpy(data).view(dtype).reshape(shape)
