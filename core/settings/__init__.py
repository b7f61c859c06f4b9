"""What a function is told, in one form (codec) that infra renders and handlers read."""
