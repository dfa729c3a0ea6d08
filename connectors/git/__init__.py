"""What lies behind the git source: a repository, asked through the `git` program."""
