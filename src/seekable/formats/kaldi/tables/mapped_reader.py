"""Tables whose keys are speakers, read by utterances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from seekable.errors import KeyNotFound
from seekable.formats.kaldi.files.stored_file import takes_options
from seekable.formats.kaldi.tables.random_access import RandomAccessReader

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from seekable.formats.kaldi.files.pipes import Pipes
    from seekable.formats.kaldi.holders.holder import Holder

__all__ = ["MappedReader"]


@final
class MappedReader:
    r"""The entries of a table by other keys, which a map translates: of speakers by their utterances.

    Args:
        table_rspecifier: the table, as in `RandomAccessReader`.
        map_rspecifier: a table of tokens that has the key for each key that is looked up, such as
            ``"ark:data/train/utt2spk"``; empty if no key is translated.
        holder: what the table holds: a name such as ``"matrix"``, or a holder.
        pipes: ``"allow"`` if rspecifiers and the lines of scripts may be commands; ``"specifier"`` if
            rspecifiers may be, and lines may not.
        storage_options: the options of the stores of addresses, as in `open_rx`.
        holder_options: fields of the holder, as in `find_holder`.

    Raises:
        InvalidArgument, DataNotFound, ...: as in `RandomAccessReader`.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as table, tempfile.NamedTemporaryFile() as names:
        ...     _ = table.write(b"spk1 7\n"), table.flush()
        ...     _ = names.write(b"utt1 spk1\nutt2 spk1\n"), names.flush()
        ...     with MappedReader(f"ark:{table.name}", f"ark:{names.name}", "int32") as reader:
        ...         reader["utt1"], reader["utt2"]
        (7, 7)
    """

    def __init__(
        self,
        table_rspecifier: str,
        map_rspecifier: str,
        holder: str | Holder | type,
        *,
        pipes: Pipes = "refuse",
        storage_options: Mapping[str, Any] | None = None,
        **holder_options: Any,
    ) -> None:
        self._map_rspecifier = map_rspecifier
        # The options may be for one of the two alone; where they are for none, the table refuses them.
        is_for_map = bool(map_rspecifier) and takes_options(map_rspecifier)
        is_for_table = takes_options(table_rspecifier) or not is_for_map
        self._table = RandomAccessReader(
            table_rspecifier,
            holder,
            pipes=pipes,
            storage_options=storage_options if is_for_table else None,
            **holder_options,
        )
        self._map: RandomAccessReader | None = None
        if map_rspecifier:
            try:
                self._map = RandomAccessReader(
                    map_rspecifier,
                    "token",
                    pipes=pipes,
                    storage_options=storage_options if is_for_map else None,
                )
            except BaseException:
                self._table.close()
                raise

    @property
    def is_open(self) -> bool:
        """True until `close` is called."""
        return self._table.is_open

    def __contains__(self, key: str) -> bool:
        """Return True if the table has an entry for this key.

        Raises:
            KeyNotFound: the map has no such key.
            InvalidArgument, CorruptTable, ...: as in `RandomAccessReader`.
        """
        return self._translated(key) in self._table

    def __getitem__(self, key: str) -> Any:
        """Return the object for a key; errors and memory as in `RandomAccessReader`.

        Raises:
            KeyNotFound: the map has no such key, or the table none that it is translated to.
        """
        return self._table[self._translated(key)]

    def _translated(self, key: str) -> str:
        if self._map is None:
            return key
        try:
            found: str = self._map[key]
        except KeyNotFound:
            raise KeyNotFound(
                f"the map {self._map_rspecifier!r} has no entry with the key {key!r}, which says nothing of "
                f"the table: complete the map"
            ) from None
        return found

    def close(self) -> None:
        """Close both tables. Objects stay valid. Closing again does nothing."""
        self._table.close()
        if self._map is not None:
            self._map.close()

    def __enter__(self) -> MappedReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
