"""From the changes of a source to a written index and ledger."""
