"""WHAT DOES A FILE SAY? Bytes and a media type to sections, one module for each family of formats."""
