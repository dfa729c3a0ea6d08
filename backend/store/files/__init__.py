"""Which files did people bring, and who still uses them?"""
