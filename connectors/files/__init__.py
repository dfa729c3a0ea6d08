"""Files of a folder or a repository: walker, glob patterns, paths and access rules."""
