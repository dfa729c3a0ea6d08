"""Services that sources read from, each as a local server that behaves like it, over real HTTP on loopback."""
