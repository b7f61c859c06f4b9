"""Holds the model of the world: one frozen type per thing of AWS, Kubernetes and Kafka.

A part that could not be read is an Unknown.
"""
