"""From a file to typed columns.

A file becomes a table of cells (`reading` with `row_of_names`, `workbook` with `workbook_parts`, `workbook_cells`,
`workbook_dates` and `workbook_xml`, `parquet` with `parquet_pages`, `frames`; a `table` is their result), with a row
for each patient (`measurements`). Its cells get a meaning: one text at a time (`cell_parsing`), then a whole column
(`column_parsing`: its `distinct_texts` become a `column_reading`, with `parsed_texts`, `decimal_signs`,
`result_signs` and `lookalikes`), then all columns together, as a schema and arrays (`schema_inference`, with
`stated_settings`, `feature_inference`, `outcome_inference`, `level_order` and `outcome_checks`). `arrays` checks what
comes as arrays instead, `entered_values` reads what a person enters later by the same rules, `reading_options` are
those rules as a command's options, `how_to_state` says in a message where each is stated, `allowed_numbers` says
which numbers can be held at all, `restoring` opens what was stored, and `strict_yaml` reads schemas.
"""
