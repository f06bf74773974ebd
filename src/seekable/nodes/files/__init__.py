"""The leaves over indexed files: their base, the questions that all of them answer, and runs of bytes."""
