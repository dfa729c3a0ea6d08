"""Who are the people, what proves it, and which groups are they in?"""
