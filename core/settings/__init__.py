"""What a function is told, in one form that infra renders and handlers read."""
