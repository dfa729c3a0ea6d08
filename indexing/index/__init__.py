"""What both index engines share: the protocols, validation and hybrid ranking."""
