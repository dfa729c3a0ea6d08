"""The shapes of JSON requests and responses, and their conversion."""
