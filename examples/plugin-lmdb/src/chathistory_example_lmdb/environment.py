"""LMDB environments, of which a process must open only one for each file."""

import os
from threading import Lock

import lmdb

_open: "dict[tuple[int, str], Environment]" = {}
_lock = Lock()


class Environment:
    """An open file and its two tables."""

    def __init__(self, path: str, *, map_size: int, sync: bool) -> None:
        self.lmdb = lmdb.Environment(path, map_size=map_size, sync=sync, subdir=False, max_dbs=2, mode=0o600)
        self.heads = self.lmdb.open_db(b"heads")
        self.blocks = self.lmdb.open_db(b"blocks")
        self.users = 0


def acquire(path: str, *, map_size: int, sync: bool) -> Environment:
    """The file's environment, opened by the first who needs it."""
    name = os.getpid(), os.path.realpath(path)
    with _lock:
        if name not in _open:
            _open[name] = Environment(path, map_size=map_size, sync=sync)
        _open[name].users += 1
        return _open[name]


def release(environment: Environment) -> None:
    """Close it after the last who needed it."""
    with _lock:
        environment.users -= 1
        if not environment.users:
            environment.lmdb.close()
            for name in [name for name, each in _open.items() if each is environment]:
                del _open[name]
