"""One module an agent framework, which stands between it and a history and needs the extra of its name."""
