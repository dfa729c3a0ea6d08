"""How far has each run of research come, and what is kept of it?"""
