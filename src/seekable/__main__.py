"""``python -m seekable`` is the command ``seekable``."""

from __future__ import annotations

from seekable.cli.main import main

if __name__ == "__main__":
    main()
