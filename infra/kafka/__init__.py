"""Kafka, Connect, topics and volumes, as Strimzi and Kubernetes know them."""
