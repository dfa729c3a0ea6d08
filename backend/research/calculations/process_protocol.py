"""What the process of a calculation and the one that starts it agree on."""

MOST_OUTPUT = 20_000
"""Characters of what a calculation writes; one more says that there was more."""
LOAD_FAILED = 3
"""The exit status of a process that cannot load the component."""
