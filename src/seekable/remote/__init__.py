"""Files that lie elsewhere, read range by range and kept on disk block by block.

The Hugging Face Hub is one client: it fetches bytes, lists files, and stands for them with placeholders.
"""
