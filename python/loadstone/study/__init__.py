"""Several runs that belong together: which comes next, and how they are run one by one."""
