"""Remote git repositories: fetching a branch, and reading its files as documents."""
