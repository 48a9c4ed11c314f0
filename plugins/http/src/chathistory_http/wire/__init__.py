"""The wire contract of the chat history service: what its server and its clients say to each other. No I/O."""
