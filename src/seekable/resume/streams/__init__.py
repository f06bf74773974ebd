"""Streams that go on by rows: what each source has given, and what waits in the stages."""
