"""From a question to the sections that the asker may read."""
