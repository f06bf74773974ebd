"""Records as columns of Arrow types."""
