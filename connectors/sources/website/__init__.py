"""A website: its addresses, its robots.txt, what is still to be asked, and what its pages say."""
