"""One module a message format; `chat_message` is the canonical one and the only one that encodes."""
