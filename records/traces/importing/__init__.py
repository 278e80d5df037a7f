"""Other people's trace formats, a file each, and the table that names them."""
