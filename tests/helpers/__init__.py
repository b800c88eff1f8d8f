"""What several tests share: oracles, random problems, models, commands, pages."""
