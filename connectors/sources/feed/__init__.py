"""Feeds: RSS, Atom and JSON Feed."""
