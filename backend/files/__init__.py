"""People's own files: uploaded, read, indexed for their owner alone, given to questions."""
