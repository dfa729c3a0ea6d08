"""One package for each kind of source. None imports another."""
