"""Says of any EKS cluster with Strimzi what would let a broker die or a producer stall today.

facts (what was read, with what could not be) -> judge (findings with evidence, weight and remedy)
-> the `survey` command. Clusters are found by Strimzi's resources and labels, never by our names.
"""
