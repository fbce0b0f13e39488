"""embed.py OUTPUT NAME SCRIPT: writes a script as a C++ string literal."""
import sys

output, name, script = sys.argv[1:]
with open(script, encoding="utf-8") as stream:
    text = stream.read()
with open(output, "w", encoding="utf-8") as stream:
    stream.write("constexpr const char *" + name + ' = R"python(' + text + ')python";\n')
