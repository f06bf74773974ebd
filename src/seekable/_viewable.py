"""The method ``view`` of what can be looked at in a browser: datasets, streams and loaders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seekable._lazy import lazy

if TYPE_CHECKING:
    from seekable.viewer import viewer
    from seekable.viewer.viewer import Viewer
else:
    viewer = lazy("seekable.viewer.viewer")

__all__ = ["Viewable"]


class Viewable:
    """What has the method ``view``."""

    __slots__ = ()

    def view(self, **options: Any) -> Viewer:
        """Return a viewer of this alone, which a notebook shows; the same as ``sk.view({"data": self})``.

        Args:
            options: the options of `seekable.view`.

        Raises:
            MissingDependency: the extra ``view`` is not installed.

        Example:
            >>> import seekable as sk
            >>> with sk.from_sequence(["a", "b"]).view() as viewer:
            ...     viewer.url.startswith("http://127.0.0.1:")
            True
        """
        return viewer.view(self, **options)
