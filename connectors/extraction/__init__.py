"""Extract sections from bytes of a known media type; one module for each family of formats."""
