"""Arrow's own files, Feather V2 too, and the streams that Hugging Face ``datasets`` keeps its data in."""
