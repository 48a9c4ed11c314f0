"""What a run is given of a conversation."""

from chathistory_core.loading.loading import Asked, Given, Loading, OnLoadError

__all__ = ["Asked", "Given", "Loading", "OnLoadError"]
