"""Texts to token ids: tokenizers of several packages, ends of documents, arrays beside the tokens."""
