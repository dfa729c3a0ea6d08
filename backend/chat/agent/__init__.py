"""The tools of Agent mode: what the model may call, how its calls are run, and what they may never do."""
