"""Batches of streams: lanes shared out to ranks and workers, and put together again in slot order."""
