"""What to measure next: gains, policies, roll-outs over many rows, rules for stopping, and the rows that advice rests on."""
