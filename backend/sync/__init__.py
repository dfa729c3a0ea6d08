"""Syncs of sources: runs, leases, batches and worker threads."""
