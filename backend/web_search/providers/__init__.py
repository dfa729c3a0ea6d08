"""The search engines that can be asked: one module each, which declares its settings and its credential."""
