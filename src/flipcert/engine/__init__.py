"""How work is cut into blocks and spread over cores."""
