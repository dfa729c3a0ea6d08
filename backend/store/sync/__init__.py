"""Which sources are there, and how far has each run of them come?"""
