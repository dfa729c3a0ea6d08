"""GitHub: repositories, what is said and written in them, and who may read it."""
