"""References for a text without any: its chunks are matched with those of sources."""
