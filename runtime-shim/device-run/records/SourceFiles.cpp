#include "records/SourceFiles.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include <elf.h>

namespace devicerun {
namespace {

/// Forms and contents of DWARF 5 (https://dwarfstd.org, 6.2.4 and 7.5.6) that occur in line tables.
enum : std::uint64_t {
  kPath = 1,   // DW_LNCT_path
  kFolder = 2, // DW_LNCT_directory_index
  kData2 = 0x05,
  kData4 = 0x06,
  kData8 = 0x07,
  kString = 0x08,
  kBlock = 0x09,
  kData1 = 0x0b,
  kStrp = 0x0e,
  kUdata = 0x0f,
  kData16 = 0x1e,
  kLineStrp = 0x1f,
};

/// Reads forward; after the end, and for what it does not understand, `failed` is set and all values are 0.
class Bytes {
public:
  explicit Bytes(std::string_view data) : data(data) {}

  std::uint64_t fixed(std::size_t size) {
    std::uint64_t value = 0;
    if (const std::string_view bytes = take(size); bytes.size() == size && size <= sizeof value)
      std::memcpy(&value, bytes.data(), size);
    return value;
  }
  std::uint64_t leb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint64_t byte = fixed(1);
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80)
        return value;
    }
    failed = true;
    return 0;
  }
  std::string_view text() {
    const std::size_t end = data.find('\0');
    if (end == std::string_view::npos) {
      failed = true;
      return {};
    }
    const std::string_view result = take(end);
    take(1);
    return result;
  }
  std::string_view take(std::uint64_t size) {
    if (failed || size > data.size()) {
      failed = true;
      data = {};
      return {};
    }
    const std::string_view result = data.substr(0, size);
    data.remove_prefix(size);
    return result;
  }
  bool isAtEnd() const { return data.empty(); }

  bool failed = false;

private:
  std::string_view data;
};

std::string_view textAt(std::string_view section, std::uint64_t offset) {
  if (offset >= section.size())
    return {};
  section.remove_prefix(offset);
  return section.substr(0, section.find('\0'));
}

/// The header of the line table of one compile unit.
class LineTable {
public:
  LineTable(Bytes bytes, std::string_view strings, std::string_view lineStrings, std::size_t offsetSize)
      : bytes(bytes), strings(strings), lineStrings(lineStrings), offsetSize(offsetSize) {}

  /// False when the header is of a version or form that is not known.
  bool addFiles(std::set<std::string> &files) {
    const std::uint64_t version = bytes.fixed(2);
    if (version < 2 || version > 5)
      return false;
    if (version == 5)
      bytes.take(2);                  // sizes of addresses and segments
    bytes.take(offsetSize);           // length of the header
    bytes.take(version >= 4 ? 5 : 4); // how lines are counted
    const std::uint64_t opcodes = bytes.fixed(1);
    bytes.take(opcodes ? opcodes - 1 : 0);
    if (version == 5)
      addEntries(files);
    else
      addOldEntries(files);
    return !bytes.failed;
  }

private:
  struct Entry {
    std::string path;
    std::uint64_t folder = 0;
  };

  std::vector<Entry> entries() {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> formats;
    for (std::uint64_t count = bytes.fixed(1); count > 0 && !bytes.failed; --count) {
      const std::uint64_t content = bytes.leb();
      formats.emplace_back(content, bytes.leb());
    }
    std::vector<Entry> result;
    for (std::uint64_t count = bytes.leb(); count > 0 && !bytes.failed; --count) {
      Entry entry;
      for (const auto &[content, form] : formats)
        read(content, form, entry);
      result.push_back(std::move(entry));
    }
    return result;
  }

  void read(std::uint64_t content, std::uint64_t form, Entry &entry) {
    std::uint64_t value = 0;
    switch (form) {
    case kString:
      entry.path = content == kPath ? bytes.text() : (bytes.text(), entry.path);
      return;
    case kStrp:
    case kLineStrp: {
      const std::string_view text = textAt(form == kStrp ? strings : lineStrings, bytes.fixed(offsetSize));
      if (content == kPath)
        entry.path = text;
      return;
    }
    case kUdata:
      value = bytes.leb();
      break;
    case kBlock:
      bytes.take(bytes.leb());
      return;
    case kData1:
    case kData2:
    case kData4:
    case kData8:
      value = bytes.fixed(form == kData1 ? 1 : form == kData2 ? 2 : form == kData4 ? 4 : 8);
      break;
    case kData16:
      bytes.take(16);
      return;
    default:
      bytes.failed = true;
    }
    if (content == kFolder)
      entry.folder = value;
  }

  void addEntries(std::set<std::string> &files) {
    std::vector<Entry> folders = entries(); // the first is that of the compiler
    for (Entry &folder : folders)
      folder.path = joined(folders.front().path, folder.path);
    for (const Entry &file : entries())
      files.insert(joined(file.folder < folders.size() ? folders[file.folder].path : "", file.path));
  }

  void addOldEntries(std::set<std::string> &files) {
    std::vector<std::string> folders{""}; // that of the compiler stands elsewhere
    for (std::string_view folder; !(folder = bytes.text()).empty();)
      folders.emplace_back(folder);
    for (std::string_view name; !(name = bytes.text()).empty();) {
      const std::uint64_t folder = bytes.leb();
      bytes.leb(); // time and size
      bytes.leb();
      files.insert(joined(folder < folders.size() ? folders[folder] : "", std::string(name)));
    }
  }

  static std::string joined(const std::string &folder, const std::string &name) {
    return (std::filesystem::path(folder) / name).lexically_normal().string();
  }

  Bytes bytes;
  std::string_view strings, lineStrings;
  std::size_t offsetSize;
};

/// The content of a section; nothing when it is missing or compressed.
std::optional<std::string> sectionOf(std::ifstream &file, std::string_view wanted) {
  const auto read = [&](std::uint64_t offset, void *to, std::size_t size) {
    file.clear();
    file.seekg(static_cast<std::streamoff>(offset));
    return static_cast<bool>(file.read(static_cast<char *>(to), static_cast<std::streamsize>(size)));
  };
  Elf64_Ehdr header{};
  if (!read(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr) ||
      header.e_shstrndx >= header.e_shnum)
    return std::nullopt;
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (!read(header.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr)))
    return std::nullopt;
  constexpr std::uint64_t most = std::uint64_t{1} << 30;
  const auto contentOf = [&](const Elf64_Shdr &section) -> std::optional<std::string> {
    if (section.sh_type == SHT_NOBITS || (section.sh_flags & SHF_COMPRESSED) || section.sh_size > most)
      return std::nullopt;
    std::string content(section.sh_size, '\0');
    return read(section.sh_offset, content.data(), content.size()) ? std::optional(std::move(content))
                                                                   : std::nullopt;
  };
  const std::optional<std::string> names = contentOf(sections[header.e_shstrndx]);
  for (const Elf64_Shdr &section : sections)
    if (names && textAt(*names, section.sh_name) == wanted)
      return contentOf(section);
  return std::nullopt;
}

} // namespace

std::optional<std::vector<std::string>> sourceFilesOf(const std::string &module) {
  std::ifstream file(module, std::ios::binary);
  const std::optional<std::string> lines = file ? sectionOf(file, ".debug_line") : std::nullopt;
  if (!lines)
    return std::nullopt;
  const std::string strings = sectionOf(file, ".debug_str").value_or(""),
                    lineStrings = sectionOf(file, ".debug_line_str").value_or("");
  std::set<std::string> files;
  Bytes rest(*lines);
  while (!rest.isAtEnd()) {
    std::uint64_t length = rest.fixed(4);
    const bool isLong = length == 0xFFFFFFFF;
    if (isLong)
      length = rest.fixed(8);
    const Bytes table(rest.take(length));
    if (rest.failed || !LineTable(table, strings, lineStrings, isLong ? 8 : 4).addFiles(files))
      return std::nullopt;
  }
  return std::vector<std::string>(files.begin(), files.end());
}

} // namespace devicerun
