"""Mail in mbox files."""
