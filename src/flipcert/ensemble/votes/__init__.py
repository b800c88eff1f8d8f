"""How votes make a winner, and what it takes to make another."""
