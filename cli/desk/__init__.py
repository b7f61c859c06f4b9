"""`stillwater desk`: the page on loopback that somebody on call keeps open.

reading   from the stores and from λ health, shared by everybody who looks
state     what of it is shown, decided by pure functions
server    who may ask, and what they are sent
wishes    hold, release, pause ...: the command line's own functions
"""
