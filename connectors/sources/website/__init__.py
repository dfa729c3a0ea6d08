"""The website source: pages and files found by following links or reading sitemaps."""
