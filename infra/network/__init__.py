"""Builds where a cluster stands: VPC, subnets, ways to AWS's APIs."""
