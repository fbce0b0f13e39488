"""spoil.py FACTS DIRECTORY: copies of a facts file that are of other versions, cut, damaged or empty.

A facts file begins with the word DTFACTS, a byte with the format version, and the length and text of the tool's
version.
"""

import pathlib
import sys

facts, directory = pathlib.Path(sys.argv[1]).read_bytes(), pathlib.Path(sys.argv[2])
word = b"DTFACTS"
assert facts.startswith(word) and facts[7] < 40 and facts[8] < 20, facts[:20]
version = facts[9 : 9 + facts[8]]
assert version.count(b".") == 2, version
middle = len(facts) // 2
copies = {
    "format": word + bytes([facts[7] + 40]) + facts[8:],
    "tool": facts[:9] + b"9" + facts[10:],
    "cut": facts[:middle],
    "damaged": facts[:middle] + bytes([facts[middle] ^ 4]) + facts[middle + 1 :],
    "longer": facts + b"x",
    "begin": facts[:5],
    "empty": b"",
}
for name, content in copies.items():
    (directory / f"{name}.facts").write_bytes(content)
