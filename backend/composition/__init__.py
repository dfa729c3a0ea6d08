"""Chooses and opens the parts of a home, in one class for each group: the index, sources, the web, chat and so on."""
