"""Repositories, asked through the `git` program, and how their files become documents."""
