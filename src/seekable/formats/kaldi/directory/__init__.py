"""Data directories of Kaldi: text tables beside each other, which describe the same utterances."""
