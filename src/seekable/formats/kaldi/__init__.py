"""Kaldi's archives and scripts as data files: an entry is a record, a pair of its key and its object."""
