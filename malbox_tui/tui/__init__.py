"""The console. It sees ports, config and model only."""
