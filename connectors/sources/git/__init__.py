"""The git source: files of one branch."""
