"""Start, watch and stop `loadstone-engine`.

Knows processes, pipes and the engine's events. Deliberately knows nothing of bundles, reports
or job files: whoever starts an engine gets its events and decides what they mean.
"""
