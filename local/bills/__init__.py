"""Synthetic bills of a described Kafka cluster, whose every total is known beforehand.

For tests and measurements alone: every line says that it is synthetic, and so does every manifest.
The twin's own bill, of what it really ran, is local.aws.billing.
"""
