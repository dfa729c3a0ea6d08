"""Which names and private terms must not leave in a query to the web?"""
