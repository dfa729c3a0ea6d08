"""The final report: reports merged under one numbering, contradictions, the text, its checks, and how it is shown."""
