"""What git's hooks do once Python runs: neither Typer nor Dulwich's porcelain is loaded here."""
