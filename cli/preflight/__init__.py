"""`stillwater preflight`: what an account would refuse, asked before the first resource.

needs (counted from the spec) and read (every part of the account at once, none costing another) ->
core.checks.new_cluster -> show.
"""
