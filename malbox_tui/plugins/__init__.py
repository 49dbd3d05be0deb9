"""Host plugins: their manifests, the confined processes they run in, and the built-in ones."""
