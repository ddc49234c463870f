"""One spelling for all texts that a reader cannot tell apart.

Sensitive values are compared in it, so that several spellings of one value do not pass for diverse
values. They are published as they are in the source.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["one_spelling"]

# Format characters (zero-width spaces, joiners, marks of direction), and those letters, marks and
# symbols that show nothing: the grapheme joiner, fillers of Hangul, inherent vowels of Khmer,
# selectors of variants, the blank of Braille; and what Unicode has set aside to show nothing.
_UNSEEN = (
    r"[\p{Cf}\x{034F}\x{115F}\x{1160}\x{3164}\x{FFA0}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{2800}"
    r"\x{2065}\x{FE00}-\x{FE0F}\x{FFF0}-\x{FFF8}\x{E0000}-\x{E0FFF}]+"
)
_BLANKS = r"[\p{Z}\p{Cc}]+"
_PLAIN = "^[!-~]+( [!-~]+)*$"  # ASCII without a blank too many: in the form already


def one_spelling(values: pa.Array) -> pa.Array:
    """The values, texts in one spelling; empty and blank ones become missing.

    Characters that show nothing are left out, the rest is brought into Unicode's form NFKC
    (characters composed, compatibility forms replaced by what they stand for), and blanks of any
    kind become one space between words. Upper and lower case remain different.
    """
    if pa.types.is_string_view(values.type):
        values = values.cast(pa.string())
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return values
    if pc.all(pc.match_substring_regex(values, _PLAIN)).as_py() in (True, None):
        return values
    seen = pc.replace_substring_regex(values, _UNSEEN, "")
    composed = pc.utf8_normalize(seen, "NFKC")
    spaced = pc.utf8_trim(pc.replace_substring_regex(composed, _BLANKS, " "), " ")
    return pc.if_else(pc.equal(spaced, ""), pa.scalar(None, spaced.type), spaced)
