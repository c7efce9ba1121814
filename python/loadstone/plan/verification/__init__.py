"""What is to be verified, by stamps or by fio's headers, and what is remembered of it between runs."""
