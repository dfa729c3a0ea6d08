"""What other programs use Quarry by, each by the conventions of their own."""
