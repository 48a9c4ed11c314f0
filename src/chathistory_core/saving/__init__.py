"""What is stored of a run that has ended: whole and once, what is kept where it failed, what waits for the store."""
