"""The ledger's DynamoDB table: one gateway, and a module per kind of document in it."""
