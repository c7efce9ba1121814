"""Many load generators as one: an agent on each host, a coordinator, and their results merged.

Knows how hosts are named, reached, held together in time and given up. What each of them runs is
a session like any other.
"""
