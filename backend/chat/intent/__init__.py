"""The intent step of Chat mode: from a message to what is searched on the web and in company knowledge, and which pages are read."""
