"""Tests start as from a terminal, whoever started them."""

import signal

# A background job of a script, as CI may be, inherits SIGINT ignored, and nohup adds SIGHUP. What
# tests start would inherit both, and no Ctrl-C of theirs would arrive.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(_number, signal.SIG_DFL)
