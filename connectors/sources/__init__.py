"""One module for each kind of source. None imports another."""
