"""Research: knowledge with exact quotes, and texts whose sentences refer to their sources."""
