"""Extended filenames and specifiers: parsed, and opened as binary files; commands and their dangers."""
