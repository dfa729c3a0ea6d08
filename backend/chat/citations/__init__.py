"""Citation markers, their numbering, and the verification of cited sentences."""
