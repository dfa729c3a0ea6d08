"""The API of OpenAI: what its clients send, and how they are answered."""
