"""What a person types: one file for each verb, named as the verb."""
