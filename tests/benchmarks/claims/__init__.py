"""Claims with a known truth, made from public data, for measuring the check of citations."""
