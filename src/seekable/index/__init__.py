"""Where records lie: an index beside the data, built once and kept up to date.

`open_files` turns files and a `Scanner` into a `FileSet`, which answers where the records of a file
are. This layer knows no format: what a record is, the scanner says.
"""
