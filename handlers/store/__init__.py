"""Keeps the ledger's DynamoDB table: incidents, other documents, and how both are written."""
