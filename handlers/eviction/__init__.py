"""The webhook in the cluster: questions of the API server, readings, certificate, answers."""
