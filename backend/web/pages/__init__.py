"""The pages, one module a subject: what each reads and which forms it accepts."""
