"""The files of a git branch."""
