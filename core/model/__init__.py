"""Holds what the world looks like: one frozen type per thing of AWS, Kubernetes and Kafka.

Whoever asks, a thing is one type. A part that could not be read is an Unknown.
"""
