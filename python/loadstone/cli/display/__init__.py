"""What is shown while a verb works and when it is done."""
