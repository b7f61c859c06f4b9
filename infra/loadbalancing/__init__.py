"""The way clients take to the brokers."""
