"""Knowledge with exact quotes: how it is built, kept, ranked and shown."""
