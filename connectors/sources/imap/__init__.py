"""The IMAP source: the mail of one mailbox."""
