"""Data directories of Kaldi as data: each utterance is a record of all tables."""
