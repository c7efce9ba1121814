"""Other people's languages, one package each."""
