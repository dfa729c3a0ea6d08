"""Conversations that last: their turns, who follows these, and what is shown of their answers."""
