"""What the verbs that run something have in common: consent, commands, repeats, studies."""
