"""What is out there, and who may read it?"""
