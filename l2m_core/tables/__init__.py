"""From a file to typed columns: reading, cells, columns, values, and the schema that is inferred from them."""
