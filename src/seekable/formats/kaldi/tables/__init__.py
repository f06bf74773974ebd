"""Tables: scripts and archives, read in order or by key, and written."""
