"""A mailbox on an IMAP server."""
