"""A folder of this machine as a source."""
