"""Batches of datasets and streams: made ahead, shared out to ranks, and resumed exactly."""
