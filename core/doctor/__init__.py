"""How a live account and cluster differ from what their spec asks for."""
