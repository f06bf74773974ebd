"""The reopening of data whose files have changed: they are indexed as they are now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable.errors import KeyNotFound
from seekable.viewer.opened import open_soon
from seekable.viewer.page import Redirect

if TYPE_CHECKING:
    from seekable.viewer.opened import Opened
    from seekable.viewer.page import Asked


def reopen(opened: Opened, asked: Asked) -> Redirect:
    """Open data again, and return its address, or where the progress of its index is shown.

    Raises:
        KeyNotFound: there is no such data, or it came as an object, which only its program can make.
    """
    name = asked.name
    if name not in opened.openers:
        opened.dataset(name)
        message = f"{name} was given to the viewer as an object: open the data again, and view that"
        raise KeyNotFound(message)
    open_soon(opened, name)
    return Redirect(f"d/{name}/")
