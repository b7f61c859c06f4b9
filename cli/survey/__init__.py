"""Reads any EKS cluster with Strimzi and says what would let a broker die or a producer stall."""
