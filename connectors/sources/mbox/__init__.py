"""The mbox source: mail in mbox files."""
