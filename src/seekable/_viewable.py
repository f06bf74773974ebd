"""The method ``view`` of what can be looked at in a browser: datasets, streams and loaders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seekable._lazy import lazy

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from seekable.viewer import viewer
    from seekable.viewer.viewer import Viewer
else:
    viewer = lazy("seekable.viewer.viewer")

__all__ = ["Viewable"]


class Viewable:
    """An object with the method ``view``."""

    __slots__ = ()

    def view(
        self,
        *,
        height: int = 600,
        log: str | os.PathLike[str] | None = None,
        media_root: str | os.PathLike[str] | None = None,
        text_key: str | None = None,
        tokenizer: str | os.PathLike[str] | None = None,
        allow_host: Sequence[str] = (),
        frame_from: Sequence[str] = (),
    ) -> Viewer:
        """Return a viewer of this alone, under the name "data"; the same as ``sk.view(self)``.

        Args:
            height: as of `seekable.view`.
            log: as of `seekable.view`.
            media_root: as of `seekable.view`.
            text_key: as of `seekable.view`.
            tokenizer: as of `seekable.view`.
            allow_host: as of `seekable.view`.
            frame_from: as of `seekable.view`.

        Raises:
            MissingDependency: the extra ``view`` is not installed.

        Example:
            >>> import seekable as sk
            >>> with sk.from_sequence(["a", "b"]).view() as viewer:
            ...     viewer.url.startswith("http://127.0.0.1:")
            True
        """
        return viewer.view(
            self,
            height=height,
            log=log,
            media_root=media_root,
            text_key=text_key,
            tokenizer=tokenizer,
            allow_host=allow_host,
            frame_from=frame_from,
        )
