#include "analyzer/report/diagnostic/Fingerprint.h"

#include "analyzer/report/source/Text.h"

#include <fmt/format.h>

#include <map>

namespace devicetidy {
namespace {

/// FNV-1a, 64 bits: the same on every machine; it need not resist attacks.
class Hash {
public:
  void add(std::string_view text) {
    for (char c : text)
      add(c);
    add('\0'); // so that "ab" + "c" is not "a" + "bc"
  }
  std::string digits() const { return fmt::format("{:016x}", value); }

private:
  void add(char c) { value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3u; }
  std::uint64_t value = 0xCBF29CE484222325u;
};

std::string withoutSpaces(std::string_view line) {
  std::string text;
  for (char c : line)
    if (c != ' ' && (c < '\t' || c > '\r'))
      text += c;
  return text;
}

} // namespace

void addFingerprints(std::vector<Diagnostic> &diagnostics, const std::string &sourceRoot,
                     SourceCache &sources) {
  std::map<std::string, std::size_t> seen;
  const auto fileOf = [&](const Location &where) { return relativePath(where.file.str(), sourceRoot); };
  const auto lineAt = [&](const Location &where) {
    return withoutSpaces(sources.line(where.file, where.line).value_or(""));
  };
  for (Diagnostic &diagnostic : diagnostics) {
    Hash hash;
    hash.add(diagnostic.check);
    hash.add(fileOf(diagnostic.where));
    hash.add(diagnostic.function);
    hash.add(lineAt(diagnostic.where));
    if (diagnostic.cause.valid()) {
      diagnostic.formerFingerprint = hash.digits();
      hash.add(fileOf(diagnostic.cause));
      hash.add(lineAt(diagnostic.cause));
    }
    const std::string digits = hash.digits();
    diagnostic.fingerprint = fmt::format("{}:{}", digits, ++seen[digits]);
  }
}

} // namespace devicetidy
