"""A folder of this machine."""
