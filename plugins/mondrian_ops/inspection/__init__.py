"""What an unknown table holds of people, and a job to begin with.

Rows that are drawn from it are counted by column and by combination of columns. Names, types and
values say which role a column may have. Imports report, tables and below; others import
`inspection.inspector` and `inspection.text`.
"""
