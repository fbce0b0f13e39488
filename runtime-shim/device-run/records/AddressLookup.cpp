#include "records/AddressLookup.h"

#include "base/Command.h"
#include "base/Text.h"

#include <fmt/format.h>

#include <cstdlib>

#include <unistd.h>

namespace devicerun {
namespace {

constexpr int kNewestLlvm = 30;
constexpr int kOldestLlvm = 14;

bool inPath(const std::string &program) {
  const char *path = std::getenv("PATH");
  for (const std::string &folder : split(path ? path : "/usr/bin:/bin", ':'))
    if (access(fmt::format("{}/{}", folder, program).c_str(), X_OK) == 0)
      return true;
  return false;
}

// LLVM's first: it reads every kind of debug information, and large programs faster.
std::string findTool() {
  if (inPath("llvm-addr2line"))
    return "llvm-addr2line";
  for (int major = kNewestLlvm; major >= kOldestLlvm; --major)
    if (std::string name = fmt::format("llvm-addr2line-{}", major); inPath(name))
      return name;
  return inPath("addr2line") ? "addr2line" : "";
}

} // namespace

AddressLines parseAddressLines(const std::string &output) {
  AddressLines result;
  std::vector<Frame> *current = nullptr;
  std::string function;
  for (const std::string &line : split(output, '\n')) {
    if (line.compare(0, 2, "0x") == 0 && function.empty()) {
      current = &result[std::strtoull(line.c_str(), nullptr, 16)];
    } else if (!current || line.empty()) {
      continue;
    } else if (function.empty()) {
      function = line;
    } else {
      // "file:line", "file:line (discriminator 2)", "??:0", "file:?"
      std::optional<Frame> place = parseFrame(line);
      Frame frame = place.value_or(Frame{});
      frame.function = function == "??" ? "" : function;
      current->push_back(frame);
      function.clear();
    }
  }
  return result;
}

std::optional<AddressLines> lookUpAddresses(const std::string &module,
                                            const std::vector<std::uint64_t> &addresses) {
  static const std::string tool = findTool();
  if (tool.empty())
    return std::nullopt;
  std::string input;
  for (std::uint64_t address : addresses)
    input += fmt::format("{:#x}\n", address);
  return parseAddressLines(outputOf({tool, "-a", "-f", "-i", "-C", "-e", module}, input));
}

} // namespace devicerun
