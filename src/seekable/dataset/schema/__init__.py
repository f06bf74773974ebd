"""What columns records have, and of what types."""
