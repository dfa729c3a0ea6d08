"""Which documents were read, what is to be indexed, and which sets are they in?"""
