"""Conversations on a Redis or Valkey server."""
