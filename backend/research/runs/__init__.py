"""Research runs that last: stored, worked on by any process, followed and stopped from anywhere."""
