"""What the host does while a run goes on, once a second, into the bundle.

Knows /proc and /sys counters. Never speaks to the engine and judges nothing.

A row is one flat dict per second. `t_ns` is its end since the run's origin, `dt_ns` its
length. All other keys are `<collector>.<entity>.<quantity>_<unit>` (the entity is left out
where there is only one). Counters are given as their increase over `dt_ns`; quantities that
are levels (memory, threads, I/Os in flight) as their value at `t_ns`. What a host does not
have has no key: no data is not zero.

A collector is a class with `read() -> Counters`, one per file, and one line in `sampler`. One of them,
`served`, follows single I/Os and says itself when it is to be looked at between two rows.
"""
