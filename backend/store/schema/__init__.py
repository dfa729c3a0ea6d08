"""Which tables and columns are there?"""
