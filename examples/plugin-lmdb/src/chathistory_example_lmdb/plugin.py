"""The name under which this distribution offers its backend."""

from urllib.parse import unquote

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from chathistory_core import ChatHistoryBackend
from chathistory_core.plugin import BackendOptions, BackendPlugin, hookimpl

_PREFIX = "lmdb:///"


class LMDBOptions(BackendOptions):
    """One file, as in `lmdb:///relative` or `lmdb:////absolute`."""

    url: str
    map_size: int = Field(default=2**34, ge=2**20)
    """How many bytes the file may grow to."""
    sync: bool = True
    """Whether an acknowledged write survives a power cut, and not only the death of the process."""

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        if not url.startswith(_PREFIX) or url == _PREFIX:
            raise PydanticCustomError("lmdb_url", "should be lmdb:///relative or lmdb:////absolute")
        return url

    def open(self) -> ChatHistoryBackend:
        """A backend on the file, which is made when it is opened."""
        from chathistory_core.conditional import ConditionalBackend
        from chathistory_example_lmdb.store import LMDBStore

        path = unquote(self.url.removeprefix(_PREFIX))
        return ConditionalBackend(LMDBStore(path, map_size=self.map_size, sync=self.sync))


@hookimpl
def chathistory_backend() -> BackendPlugin:
    """The LMDB backend."""
    return BackendPlugin(contract=1, options=LMDBOptions)
