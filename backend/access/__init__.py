"""Who is asking: how an asker proves who they are."""
