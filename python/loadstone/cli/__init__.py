"""What a person types and sees: one file per verb.

Knows arguments, terminals and exit codes. Standard output is data, standard error is talk.
Does no work of its own: every verb calls the rooms below and shows what they return.
"""
