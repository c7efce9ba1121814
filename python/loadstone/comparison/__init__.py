"""Results beside each other, whoever measured them: what differs, and what can be said of it.

Knows results, their verdicts and statistics. Knows no screen and no page.
"""
