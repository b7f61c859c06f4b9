"""Finds what AWS would refuse, without AWS: one gate for the tests and for the twin's provider.

It lives in local/ because it needs botocore's models and nothing the product runs needs it; a limit
that the product itself must respect (tags, an environment's size) is core's, and read from there.
Three oracles are derived: `model` (botocore's model of the calls that make a resource), `schema`
(the provider's SDK), `cloudformation` (the schemas that cfn-lint keeps). What none of them states
is a row of `table`; what no row can say is in `checks`, `policies`, `neighbours` and `changing`.
"""
