"""The ingest source: documents that programs put in over HTTP."""
