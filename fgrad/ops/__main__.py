"""`python -m fgrad.ops` prints the table of operations, and where each rule comes from."""

from .table import table_text

if __name__ == "__main__":
    print(table_text())
