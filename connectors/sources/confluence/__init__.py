"""Confluence: pages and blog posts with comments, and attachments, with their readers."""
