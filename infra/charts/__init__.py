"""Controllers installed from their charts."""
