"""What a person types and sees: the program, its table of verbs, and what verbs share.

`verbs/` has one file for each verb and nothing else. Knows arguments, terminals and exit codes.
Standard output is data, standard error is talk. Does no work of its own: every verb calls the
rooms below and shows what they return.
"""
