"""The index: the position of each record in its file, built once beside the data and kept up to date.

`open_files` turns files and a `Scanner` into a `FileSet`, which has the range of bytes of each record. This
layer depends on no format: the scanner finds the records.
"""
