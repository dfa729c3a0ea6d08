"""GitHub, as its REST API tells it: repositories, what is said in them, and who may read it."""
