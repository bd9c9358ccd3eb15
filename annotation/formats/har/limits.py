"""How much a network trace may hold. Sizes in bytes where nothing else is said."""

from __future__ import annotations

MIB = 2**20
CHUNK = 64 * 1024
LARGEST_CHUNK = MIB  # of one long text
LARGEST = 256 * MIB  # of the JSON, or of the zip, unpacked
LONGEST_STRING = 32 * MIB  # of one value in the JSON
LARGEST_ENTRY = 48 * MIB  # characters of all texts in one entry
DEEPEST = 64  # levels below an entry
MOST_VALUES = 200_000  # of one entry; Python keeps 40 MB for so many
MOST_ENTRIES = 200_000
MOST_MARKS = 30_000_000  # `:=<&;` in the bodies of a trace: each may begin a secret, and costs a microsecond
# A HAR says the same thing over and over and shrinks well; below the second number any ratio is harmless.
RATIO, RATIO_FROM = 200, 16 * MIB
