"""The jobs: each module measures a few and yields a record for each."""
