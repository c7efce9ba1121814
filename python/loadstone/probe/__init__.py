"""Short extra runs after a run, which tell apart what may lie behind its number.

Knows how a probe's Plan is made from that of the run, done within a budget and read. What a reading says
of an explanation is the business of `explanations`.
"""
