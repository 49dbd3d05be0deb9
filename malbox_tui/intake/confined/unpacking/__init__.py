"""Archives: what a content is, by its bytes and never by its name."""
