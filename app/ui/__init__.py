"""What the pages share: charts, escaped labels, state keys, cached services. A page imports from here and the core."""
