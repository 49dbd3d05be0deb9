"""What runs in confined processes for the intake; modules below import each other relatively and nothing else of the engine's."""
