"""How well does it find? Questions with known answers, to numbers."""
