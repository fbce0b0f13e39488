#include "base/ElfNeeded.h"

#include "base/Command.h"
#include "base/Text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>

#include <elf.h>

namespace devicerun {
namespace {

/// The beginning of a file, and typed reads from any place of it.
class ElfReader {
public:
  explicit ElfReader(const std::string &path) : file(path, std::ios::binary) {}

  template <typename T> bool read(std::uint64_t offset, T &value) {
    file.clear();
    file.seekg(static_cast<std::streamoff>(offset));
    return static_cast<bool>(file.read(reinterpret_cast<char *>(&value), sizeof value));
  }

  std::string readString(std::uint64_t offset, std::size_t longest) {
    file.clear();
    file.seekg(static_cast<std::streamoff>(offset));
    std::string text;
    char c = 0;
    while (text.size() < longest && file.get(c) && c != '\0')
      text.push_back(c);
    return text;
  }

private:
  std::ifstream file;
};

constexpr std::size_t kLongestName = 4096;
constexpr std::uint64_t kMostDynamicEntries = 65536;

/// Where the loader maps an address from, as an offset in the file.
std::optional<std::uint64_t> offsetOf(std::uint64_t address, const std::vector<Elf64_Phdr> &segments) {
  for (const Elf64_Phdr &segment : segments)
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz)
      return segment.p_offset + (address - segment.p_vaddr);
  return std::nullopt;
}

std::vector<std::string> readNeeded(ElfReader &reader, const Elf64_Phdr &dynamic,
                                    const std::vector<Elf64_Phdr> &segments) {
  std::vector<std::uint64_t> names;
  std::optional<std::uint64_t> strings;
  std::uint64_t count = std::min(dynamic.p_filesz / sizeof(Elf64_Dyn), kMostDynamicEntries);
  for (std::uint64_t i = 0; i < count; ++i) {
    Elf64_Dyn entry{};
    if (!reader.read(dynamic.p_offset + i * sizeof entry, entry) || entry.d_tag == DT_NULL)
      break;
    if (entry.d_tag == DT_NEEDED)
      names.push_back(entry.d_un.d_val);
    if (entry.d_tag == DT_STRTAB)
      strings = offsetOf(entry.d_un.d_ptr, segments);
  }
  std::vector<std::string> needed;
  if (strings)
    for (std::uint64_t name : names)
      needed.push_back(reader.readString(*strings + name, kLongestName));
  return needed;
}

} // namespace

std::optional<ElfFile> readElf(const std::string &path) {
  ElfReader reader(path);
  Elf64_Ehdr header{};
  if (!reader.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
    return std::nullopt;
  std::vector<Elf64_Phdr> segments;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!reader.read(header.e_phoff + i * sizeof segment, segment))
      return std::nullopt;
    segments.push_back(segment);
  }
  ElfFile elf;
  for (const Elf64_Phdr &segment : segments) {
    if (segment.p_type == PT_INTERP)
      elf.interpreter = reader.readString(segment.p_offset, kLongestName);
    if (segment.p_type == PT_DYNAMIC)
      elf.needed = readNeeded(reader, segment, segments);
  }
  return elf;
}

std::vector<Library> librariesOf(const std::string &program, const ElfFile &elf) {
  std::vector<Library> libraries;
  if (elf.interpreter.empty())
    return libraries;
  // "name => path (address)", "name => not found", or "path (address)" where a path was linked with.
  for (const std::string &line : split(outputOf({elf.interpreter, "--list", program}), '\n')) {
    std::string_view text = trimmed(line);
    std::size_t arrow = text.find(" => ");
    std::string_view target = arrow == std::string_view::npos ? text : text.substr(arrow + 4);
    std::size_t address = target.rfind(" (0x");
    std::string path = address == std::string_view::npos ? "" : std::string(target.substr(0, address));
    if (arrow == std::string_view::npos && path.empty())
      continue;
    std::string name(arrow == std::string_view::npos ? std::string_view(path) : text.substr(0, arrow));
    libraries.push_back({name.substr(name.rfind('/') + 1), path});
  }
  return libraries;
}

} // namespace devicerun
