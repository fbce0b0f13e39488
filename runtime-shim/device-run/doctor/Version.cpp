#include "doctor/Version.h"

#include "base/Text.h"

#include <charconv>

namespace devicerun::doctor {

std::optional<Version> parseVersion(std::string_view text) {
  std::string_view rest = trimmed(text);
  Version version;
  version.text = rest;
  if (!rest.empty() && rest.front() == 'v')
    rest.remove_prefix(1);
  int found = 0;
  for (int *part : {&version.major, &version.minor, &version.patch}) {
    int number = 0;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc() || number < 0)
      break;
    *part = number;
    ++found;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (rest.empty() || rest.front() != '.')
      break;
    rest.remove_prefix(1);
  }
  if (found == 0)
    return std::nullopt;
  return version;
}

} // namespace devicerun::doctor
