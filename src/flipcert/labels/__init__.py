"""What an attacker faces: training labels, how they are encoded, and which transformers never see them."""
