"""Kafka's nodes: groups or Karpenter's pools, what they boot, who they are."""
