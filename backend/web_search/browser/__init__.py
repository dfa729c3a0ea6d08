"""A browser for pages that need one: Chromium, behind a proxy of ours that lets it reach the public web alone."""
