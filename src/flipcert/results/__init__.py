"""What was proven: certificates, the flips of attacks, and what many certificates add up to."""
