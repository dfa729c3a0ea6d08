"""How does Quarry stay in step with its sources?"""
