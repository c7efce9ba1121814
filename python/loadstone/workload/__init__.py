"""What a user asked for, in the field's terms, whatever language it was written in."""
