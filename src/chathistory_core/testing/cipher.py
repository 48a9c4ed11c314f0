"""A codec that encrypts, for tests: two encodings of a message are never the same, and keys change.

The cipher is made of the standard library so that the tests need nothing else. Use a real one.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from itertools import count
from secrets import token_bytes

from chathistory_core.codec import MessageCodec
from chathistory_core.errors import CorruptRecordError, UnknownFormatError
from chathistory_core.messages import ChatMessage
from chathistory_core.records import Record, StoredRecord

ENCODING = "test-enc"


class EncryptingCodec:
    """Adds `+test-enc.<key id>` to the format, with the last of its keys; a fingerprint's own key never changes.

    What it encrypted is bound to its conversation and format: moved to another it does not decode.
    """

    def __init__(self, keys: Mapping[str, bytes], *, fingerprints: bool = True) -> None:
        """`keys` by their ids; without `fingerprints` a retry is another write."""
        self._ciphers = {name: _Cipher(key) for name, key in keys.items()}
        self._current = list(keys)[-1]
        self._fingerprints = fingerprints
        self._inner = MessageCodec()

    async def encode(self, key: str, messages: Sequence[ChatMessage]) -> Sequence[Record]:
        return [
            Record(
                self._ciphers[self._current].close(plain, key.encode(), format_name.encode()),
                f"{format_name}+{ENCODING}.{self._current}",
                _digest(b"a key that stays", key.encode(), plain) if self._fingerprints else None,
            )
            for plain, format_name, _ in await self._inner.encode(key, messages)
        ]

    async def decode(self, key: str, records: Sequence[StoredRecord]) -> Sequence[Sequence[ChatMessage]]:
        return await self._inner.decode(key, [self._opened(key, record) for record in records])

    def _opened(self, key: str, record: StoredRecord) -> StoredRecord:
        inner, _, encoding = record.format.rpartition("+")
        name, _, key_id = encoding.partition(".")
        cipher = self._ciphers.get(key_id)
        if name != ENCODING or cipher is None:
            raise UnknownFormatError(record.format, tuple(f"…+{ENCODING}.{each}" for each in self._ciphers))
        plain = cipher.open(record.payload, key.encode(), inner.encode())
        if plain is None:
            raise CorruptRecordError(key, record.position, "the seal is broken")
        return record._replace(payload=plain, format=inner)


class _Cipher:
    """Not for use: a keystream of HMAC-SHA256, and a seal over nonce, text and what the text is bound to."""

    def __init__(self, key: bytes) -> None:
        self._stream = _digest(key, b"stream")
        self._seal = _digest(key, b"seal")

    def close(self, plain: bytes, *bound: bytes) -> bytes:
        nonce = token_bytes(16)
        hidden = self._mixed(nonce, plain)
        return nonce + _digest(self._seal, nonce, hidden, *bound) + hidden

    def open(self, sealed: bytes, *bound: bytes) -> bytes | None:
        """The text, or None where something of it was changed."""
        nonce, seal, hidden = sealed[:16], sealed[16:48], sealed[48:]
        whole = hmac.compare_digest(seal, _digest(self._seal, nonce, hidden, *bound))
        return self._mixed(nonce, hidden) if whole else None

    def _mixed(self, nonce: bytes, text: bytes) -> bytes:
        stream = b""
        for number in count():
            if len(stream) >= len(text):
                break
            stream += _digest(self._stream, nonce, number.to_bytes(8, "big"))
        return bytes(one ^ other for one, other in zip(text, stream, strict=False))


def _digest(key: bytes, *parts: bytes) -> bytes:
    made = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        made.update(len(part).to_bytes(8, "big") + part)
    return made.digest()
