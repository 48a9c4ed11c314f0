"""Bearer tokens, as far as a client knows what one looks like."""

import re


def is_token(text: str) -> bool:
    """Whether a header can carry it: visible ASCII, without blanks."""
    return re.fullmatch("[!-~]+", text) is not None
