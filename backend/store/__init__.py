"""What does Quarry know that it must not lose? The only room that speaks to the database."""
