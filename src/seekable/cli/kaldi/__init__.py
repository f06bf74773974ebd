"""``seekable kaldi``: commands for tables of Kaldi, in the manner of Kaldi's own."""
