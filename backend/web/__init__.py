"""The pages for browsers."""
