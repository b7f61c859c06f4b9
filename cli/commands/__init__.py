"""The commands as they are typed, a module for each group of `stillwater --help`.

Only options, help and examples are here; a command imports what it runs, so that others stay quick.
"""
