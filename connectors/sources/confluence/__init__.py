"""What a Confluence site holds, and who may read it."""
