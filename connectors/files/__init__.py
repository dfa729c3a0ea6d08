"""Files of a folder or a repository: walking, glob patterns, paths and access.yaml."""
