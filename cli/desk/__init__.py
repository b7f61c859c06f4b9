"""`stillwater desk`: the page on loopback that somebody on call keeps open.

reading   from the stores and from λ health, shared by everybody who looks
state     what of it is shown, decided by pure functions
server    who may ask, what they are sent, and what they may wish
"""
