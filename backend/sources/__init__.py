"""What can be done to a source: one service for the command line, the API and the pages."""
