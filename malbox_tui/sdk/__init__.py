"""What plugin processes import. They find `malbox_plugin_sdk` here by PYTHONPATH; it needs the standard library only."""
