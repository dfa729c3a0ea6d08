"""What do the longer commands of the terminal do, and how does it look there?"""
