"""The EKS cluster, its add-ons, and the way to its API server."""
