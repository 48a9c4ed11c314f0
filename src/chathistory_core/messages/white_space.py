"""What is blank: white space as .NET's `char.IsWhiteSpace` has it, which is not Python's."""

from typing import Final

WHITE_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005"
    "\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""The white space of Unicode; `str.isspace` takes the separators U+001C to U+001F too."""


def is_blank(text: str) -> bool:
    """Whether the text is empty or white space alone."""
    return not text.strip(WHITE_SPACE)
