"""Options that several verbs take, and what a shell suggests for them."""
