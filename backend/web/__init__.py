"""What do people see in a browser?"""
