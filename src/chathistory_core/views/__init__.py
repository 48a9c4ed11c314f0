"""What a model is shown of a conversation: units that stand or fall together, windows over them, repair."""
