"""What a research run is asked, what it plans and what it has found: plain values that outlive a process."""
