"""What was asked and answered, by which assistant and in which project?"""
