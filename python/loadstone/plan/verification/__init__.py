"""What is to be verified, by stamps or by headers, and what is remembered of it between runs."""
