"""`python -m chathistory_core.cli`, where the scripts of the environment are not on the path."""

from chathistory_core.cli.program import main

main()
