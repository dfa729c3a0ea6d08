"""How does a document become findable?"""
