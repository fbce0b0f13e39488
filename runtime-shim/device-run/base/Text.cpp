#include "base/Text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace devicerun {
namespace {

// Insertions, deletions, substitutions and swaps of neighbours.
std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      std::size_t substituted = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

// A plain decimal number; from_chars for floating point is missing in older standard libraries.
std::optional<double> parseDecimal(std::string_view text) {
  bool digits = false, point = false;
  for (char c : text) {
    if (c == '.' && !point)
      point = true;
    else if (std::isdigit(static_cast<unsigned char>(c)))
      digits = true;
    else
      return std::nullopt;
  }
  if (!digits)
    return std::nullopt;
  return std::strtod(std::string(text).c_str(), nullptr);
}

} // namespace

std::optional<std::int64_t> parseInteger(std::string_view text) {
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

std::optional<double> parseSeconds(std::string_view text) {
  // A year: beyond it a deadline is a slip, and a time point could overflow.
  constexpr double longest = 366.0 * 24 * 3600;
  std::optional<double> value = parseDecimal(text);
  if (!value || *value <= 0 || *value > longest)
    return std::nullopt;
  return value;
}

std::optional<std::uint64_t> parseBytes(std::string_view text) {
  std::size_t unitStart = text.find_first_not_of("0123456789.");
  std::string_view unit = unitStart == std::string_view::npos ? "" : text.substr(unitStart);
  std::optional<double> amount = parseDecimal(text.substr(0, text.size() - unit.size()));
  if (!amount)
    return std::nullopt;
  double scale = 1;
  if (!unit.empty()) {
    constexpr std::string_view letters = "KMGT";
    std::size_t power = letters.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
    std::string_view rest = unit.substr(1);
    if (power == std::string_view::npos) {
      if (unit != "B" && unit != "b")
        return std::nullopt;
    } else if (!rest.empty() && rest != "B" && rest != "b" && rest != "iB") {
      return std::nullopt;
    } else {
      scale = std::pow(1024.0, static_cast<double>(power) + 1);
    }
  }
  double bytes = std::floor(*amount * scale);
  if (bytes < 1 || bytes >= 9.2e18)
    return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

std::string formatBytes(std::uint64_t bytes) {
  static constexpr std::array<const char *, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  double amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (amount >= 1024 && unit + 1 < units.size()) {
    amount /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", amount, units[unit]);
}

std::string describeSignal(int signal) {
  const char *name = sigabbrev_np(signal);
  const char *description = sigdescr_np(signal);
  if (!name)
    return fmt::format("signal {}", signal);
  return fmt::format("SIG{} ({})", name, description ? description : "no description");
}

std::optional<std::string> nearestTo(std::string_view word, const std::vector<std::string> &candidates) {
  std::optional<std::string> best;
  // Where more than half of the letters are others, it is another word.
  const std::size_t letters = word.size() - std::min(word.find_first_not_of('-'), word.size());
  std::size_t bestDistance = std::min(std::max<std::size_t>(2, word.size() / 3), (letters + 1) / 2) + 1;
  for (const std::string &candidate : candidates) {
    // The beginning of a long name counts as well: --nporc is meant to be --nproc-per-node.
    std::string_view start = std::string_view(candidate).substr(0, word.size());
    std::size_t distance = std::min(editDistance(word, candidate), editDistance(word, start) + 1);
    if (distance < bestDistance && distance < candidate.size()) {
      bestDistance = distance;
      best = candidate;
    }
  }
  return best;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (;;) {
    std::size_t end = text.find(separator, start);
    parts.emplace_back(text.substr(start, end - start));
    if (end == std::string_view::npos)
      return parts;
    start = end + 1;
  }
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

} // namespace devicerun
