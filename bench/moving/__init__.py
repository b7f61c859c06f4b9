"""Produces while bench.moves moves leaders: kafka-python, and Kafka's own client in Java."""
