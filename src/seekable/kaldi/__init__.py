"""Kaldi tables: specifiers, extended filenames, holders of values, readers and writers."""
