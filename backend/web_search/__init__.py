"""The open web: search engines, pages that are read, and what of a page answers a question."""
