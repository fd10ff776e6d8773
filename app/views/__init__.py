"""One script for each page; `app/main.py` lists them."""
