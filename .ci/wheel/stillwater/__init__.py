"""Stillwater, installed: the command, and below `app` the project as its repository lays it out.

The project's own packages have names as general as `core` and `cli`; they stay out of everybody
else's way in a folder that only the command puts on Python's path.
"""
