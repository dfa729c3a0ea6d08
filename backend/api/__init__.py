"""What do programs ask over HTTP, and how are they answered?"""
