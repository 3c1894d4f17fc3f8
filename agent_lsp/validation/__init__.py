"""The project's own linters and tests: ``detect`` finds them, ``run`` runs them, ``findings`` reads what they say."""
