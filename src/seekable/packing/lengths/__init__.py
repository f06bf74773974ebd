"""The lengths of the documents that samples are packed of: from the index of token files, or counted once."""
