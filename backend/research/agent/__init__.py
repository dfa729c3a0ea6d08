"""One research agent: a loop of searching, reading, reflecting and answering, until its report."""
