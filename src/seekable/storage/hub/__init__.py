"""Files of the Hugging Face Hub, read range by range and kept on disk block by block."""
