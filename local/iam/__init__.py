"""IAM in the twin: every signed call of a role is judged by its policies, as AWS judges it.

requests reads which call it is, resources what it is about, policy decides, refusals says no in
AWS's words, guard puts them in front of moto.
"""
