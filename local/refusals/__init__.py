"""Finds what AWS would refuse, without AWS: one gate for the tests and for the twin's provider.

It lives in local/ because it needs botocore's models and nothing the product runs needs it; a limit
that the product itself must respect (tags, an environment's size) is core's, and read from there.
`model` judges a resource by botocore's model of the calls that make it, `limits` by what the models
leave out, `together` by what several resources share.
"""
