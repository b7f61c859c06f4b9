"""Answers whoever wants to evict or delete one of Kafka's pods, or its node: yes, or not yet."""
