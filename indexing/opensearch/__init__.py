"""The index on a cluster: chunks in OpenSearch with its k-NN plugin. The only package that uses OpenSearch's client."""
