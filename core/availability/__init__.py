"""Decides whether Kafka can spare a broker, and says what must be read, and may be, to tell."""
