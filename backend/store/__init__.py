"""What does Quarry know that it must not lose? The only package that speaks to the database."""
