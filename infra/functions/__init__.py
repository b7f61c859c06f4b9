"""The Lambda functions: what wakes them, what they may do, what they are told."""
