"""Chooses and opens the parts that need several settings: embedding model, index, search, chat."""
