"""Which language models are set, and how many tokens may be used of them?"""
