"""Sources of documents: the document model, the Connector protocol and one package a source."""
