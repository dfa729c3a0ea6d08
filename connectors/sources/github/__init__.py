"""GitHub: issues, pull requests, discussions, wikis and files of repositories, with their readers."""
