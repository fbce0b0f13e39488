#include "records/Frame.h"

#include "base/Text.h"
#include "records/AddressLookup.h"
#include "records/SourceLines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>

namespace devicerun {
namespace {

bool startsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

bool isDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

int toLine(std::string_view digits) {
  int value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

std::string addressKey(const std::string &module, std::uint64_t offset) {
  return fmt::format("{}+{:#x}", module, offset);
}

// Such as /home/me/train.py.
bool isPython(const Frame &frame) {
  const std::string_view file = frame.file, end = ".py";
  return file.size() > end.size() && file.substr(file.size() - end.size()) == end;
}

} // namespace

std::optional<Frame> parseFrame(std::string_view text) {
  // File names may hold colons and blanks: the line is the first ":digits" before a blank or the end.
  for (std::size_t colon = text.find(':'); colon != std::string_view::npos;
       colon = text.find(':', colon + 1)) {
    std::size_t end = colon + 1;
    while (end < text.size() && isDigit(text[end]))
      ++end;
    std::size_t lineEnd = end;
    if (lineEnd == colon + 1 || colon == 0)
      continue;
    if (end < text.size() && text[end] == ':') {
      std::size_t column = end + 1;
      while (column < text.size() && isDigit(text[column]))
        ++column;
      end = column > end + 1 ? column : end;
    }
    if (end < text.size() && text[end] != ' ')
      continue;
    Frame frame{std::string(text.substr(0, colon)), toLine(text.substr(colon + 1, lineEnd - colon - 1)), ""};
    frame.function = trimmed(text.substr(end));
    if (frame.line == 0)
      return std::nullopt;
    return frame;
  }
  return std::nullopt;
}

std::optional<Address> parseAddress(std::string_view text) {
  std::size_t plus = text.rfind("+0x");
  if (plus == std::string_view::npos || plus == 0)
    return std::nullopt;
  std::string_view digits = text.substr(plus + 3);
  std::uint64_t offset = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), offset, 16);
  if (error != std::errc() || end != digits.data() + digits.size())
    return std::nullopt;
  return Address{std::string(text.substr(0, plus)), offset};
}

namespace {

// A project's libraries may have names that start like LibTorch's.
bool isLibTorch(std::string_view name) {
  std::string_view stem = name.substr(0, name.find(".so"));
  for (std::string_view known :
       {"libtorch", "libtorch_cpu", "libtorch_cuda", "libtorch_cuda_cpp", "libtorch_cuda_cu",
        "libtorch_cuda_linalg", "libtorch_python", "libtorch_global_deps", "libc10", "libc10_cuda"})
    if (stem == known)
      return true;
  return false;
}

} // namespace

bool isProjectFile(std::string_view file) {
  if (file.empty() || file == "??")
    return false;
  for (std::string_view start : {"/usr/include/", "/usr/lib/", "/usr/local/include/", "/usr/share/", "/lib/",
                                 "../sysdeps/", "./csu/", "./nptl/", "./stdlib/", "../csu/"})
    if (startsWith(file, start))
      return false;
  for (std::string_view part : {"/torch/csrc/", "/include/torch/", "/include/ATen/", "/include/c10/",
                                "/include/c++/", "/site-packages/", "/dist-packages/"})
    if (file.find(part) != std::string_view::npos)
      return false;
  return true;
}

bool isProjectModule(std::string_view module) {
  for (std::string_view start : {"/usr/lib/", "/lib/", "/lib64/", "linux-vdso"})
    if (startsWith(module, start))
      return false;
  std::string_view name = module.substr(module.rfind('/') + 1);
  for (std::string_view start : {"libvirtual_cuda", "libstdc++", "libc.so", "libgomp"})
    if (startsWith(name, start))
      return false;
  return !isLibTorch(name);
}

std::string displayPlace(const Frame &frame) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::string file = frame.file;
  std::string here = fs::current_path(error).string() + "/";
  if (!error && here.size() > 1 && startsWith(file, here))
    file.erase(0, here.size());
  return fmt::format("{}:{}", file, frame.line);
}

FrameResolver::FrameResolver() : sources(std::make_unique<SourceLines>()) {}
FrameResolver::~FrameResolver() = default;

void FrameResolver::want(const std::string &frame) {
  if (known.count(frame))
    return;
  if (std::optional<Address> address = parseAddress(frame)) {
    if (isProjectModule(address->module))
      wanted[address->module].insert(address->offset);
    else
      known[frame];
    return;
  }
  std::vector<Frame> &places = known[frame];
  std::optional<Frame> parsed = parseFrame(frame);
  // The library leaves out what is not the program's in Python; the failing line may be in an installed
  // package.
  if (parsed && (isPython(*parsed) || isProjectFile(parsed->file)))
    places.push_back(*parsed);
}

void FrameResolver::lookUpWanted() {
  for (const auto &[module, offsets] : wanted) {
    std::optional<AddressLines> lines = lookUpAddresses(module, {offsets.begin(), offsets.end()});
    noTool = noTool || !lines;
    bool anyLine = false;
    for (std::uint64_t offset : offsets) {
      std::vector<Frame> &places = known[addressKey(module, offset)];
      if (!lines)
        continue;
      for (Frame frame : (*lines)[offset]) {
        anyLine = anyLine || frame.known();
        // Compilers name files as they were given them, such as /build/../src/train.cpp.
        frame.file = std::filesystem::path(frame.file).lexically_normal().string();
        if (frame.known() && isProjectFile(frame.file))
          places.push_back(sources->outOfBrace(frame));
      }
    }
    // Start-up code never has lines: a module misses them when none of its addresses has any.
    missed = missed || (lines && !anyLine);
  }
  wanted.clear();
}

const std::vector<Frame> &FrameResolver::places(const std::string &frame) {
  want(frame);
  if (!wanted.empty())
    lookUpWanted();
  std::optional<Address> address = parseAddress(frame);
  auto found = known.find(frame);
  if (found == known.end() && address)
    found = known.find(addressKey(address->module, address->offset));
  static const std::vector<Frame> none;
  return found == known.end() ? none : found->second;
}

std::vector<Frame> FrameResolver::places(const std::vector<std::string> &stack) {
  std::vector<Frame> all;
  for (const std::string &frame : stack) {
    const std::vector<Frame> &some = places(frame);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::optional<Frame> FrameResolver::innermost(const std::vector<std::string> &stack, const std::string &op) {
  std::vector<Frame> some = places(stack);
  if (some.empty())
    return std::nullopt;
  return sources->lineOfCall(some.front(), op);
}

std::string FrameResolver::textOf(const Frame &frame, int line) { return sources->text(frame.file, line); }

} // namespace devicerun
