//===- Binary.cpp - one description of the format, used both ways ------===//
//
// `describe` names the members of each struct once; a Writer and a Reader walk the same description, so the
// two sides cannot drift apart.
//
//===----------------------------------------------------------------------===//
#include "analyzer/facts/Binary.h"

#include "DeviceTidyConfig.h"

#include <algorithm>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace devicetidy {
namespace {

constexpr std::string_view magic = "DTFACTS";
constexpr std::uint64_t formatVersion = 14; ///< raise it with every change of `describe` or of the structs

template <typename A> void describe(A &archive, Location &x) {
  archive(x.file, x.line, x.column, x.endLine, x.endColumn);
}
template <typename A> void describe(A &archive, Operand &x) {
  archive(x.reg, x.isAddress, x.isWritable, x.isMoved, x.type, x.where, x.text);
}
template <typename A> void describe(A &archive, Fact &x) {
  archive(x.kind, x.literal, x.hasObject, x.isVirtual, x.isIndirect, x.resultIsAddress, x.isDiscarded,
          x.inMacro, x.inMacroArgument, x.isObjectAssignable, x.isObjectPointee, x.isLaunch, x.result,
          x.number, x.name, x.target, x.type, x.operands, x.captures, x.templateTypes, x.templateNumbers,
          x.where);
}
template <typename A> void describe(A &archive, Terminator &x) {
  archive(x.kind, x.value, x.successors, x.cases, x.entersLoop, x.where);
}
template <typename A> void describe(A &archive, Block &x) {
  archive(x.facts, x.terminator, x.handler, x.isLoopHead, x.variesInLoop);
}
template <typename A> void describe(A &archive, Variable &x) {
  archive(x.name, x.type, x.isReference, x.isConst, x.where);
}
template <typename A> void describe(A &archive, Function &x) {
  archive(x.id, x.name, x.className, x.resultType, x.resultIsReference, x.isConstructor, x.isDestructor,
          x.isStatic, x.isConst, x.isVirtual, x.isLambda, x.isMain, x.isModel, x.isPrivate, x.hasBody,
          x.isVariadicTail, x.overrides, x.paramCount, x.requiredParams, x.locals, x.blocks, x.registerCount,
          x.where);
}
template <typename A> void describe(A &archive, Field &x) {
  archive(x.name, x.type, x.isReference, x.isPrivate, x.where);
}
template <typename A> void describe(A &archive, Type &x) {
  archive(x.id, x.kind, x.templateName, x.args, x.numbers, x.pointee, x.isProject, x.isPolymorphic,
          x.isAbstract, x.isLambda, x.bases, x.fields, x.constructors, x.methods, x.where);
}
template <typename A> void describe(A &archive, Global &x) {
  archive(x.id, x.name, x.type, x.isConst, x.where);
}
template <typename A> void describe(A &archive, Unit &x) {
  archive(x.mainFile, x.joining, x.imports, x.objects, x.torchMajor, x.torchMinor, x.functions, x.types,
          x.globals, x.globalInit, x.parseErrors, x.hasFatalError, x.isCuda, x.opaqueExpressions,
          x.skippedFunctions, x.uninstantiated, x.files);
}

template <typename A> void describe(A &archive, SourceState &x) {
  archive(x.path, x.digestHigh, x.digestLow);
}
template <typename A> void describe(A &archive, ShardMark &x) {
  archive(x.index, x.count, x.total, x.listHigh, x.listLow);
}
template <typename A> void describe(A &archive, FactsFile &x) {
  archive(x.units, x.roots, x.sources, x.shard);
}

/// Detects damage. It is no protection against forged files.
std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t sum = 0xCBF29CE484222325u ^ bytes.size();
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < 8 && at + i < bytes.size(); ++i)
      word |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
    sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
    sum ^= sum >> 29;
  }
  return sum;
}

class Writer {
public:
  template <typename... T> void operator()(T &...values) { (write(values), ...); }

  /// What was written so far, behind the header and the strings it refers to.
  std::string finish() {
    const std::string body = std::exchange(bytes, {});
    number(texts.size());
    for (const std::string &text : texts)
      string(text);
    const std::string content = std::exchange(bytes, std::string(magic)) + body;
    number(formatVersion);
    string(DEVICE_TIDY_VERSION);
    for (std::uint64_t sum = checksum(content), i = 0; i < 8; ++i, sum >>= 8)
      bytes.push_back(static_cast<char>(sum & 0xff));
    return std::move(bytes) + content;
  }

private:
  // Variable-length: most numbers are small.
  void number(std::uint64_t value) {
    while (value >= 0x80) {
      bytes.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    bytes.push_back(static_cast<char>(value));
  }
  void string(const std::string &text) {
    number(text.size());
    bytes += text;
  }
  void write(Name &name) {
    auto [entry, isNew] = ids.emplace(name, ids.size());
    if (isNew)
      texts.push_back(name.str());
    number(entry->second);
  }
  void write(std::string &text) { string(text); }
  template <typename T> void write(std::vector<T> &list) {
    number(list.size());
    for (T &item : list)
      write(item);
  }
  template <typename K, typename V> void write(std::map<K, V> &map) {
    number(map.size());
    for (auto &[key, value] : map) {
      K copy = key;
      write(copy);
      write(value);
    }
  }
  template <typename T> void write(T &value) {
    if constexpr (std::is_enum_v<T> || std::is_same_v<T, bool>)
      number(static_cast<std::uint64_t>(value));
    else if constexpr (std::is_integral_v<T>) // zigzag: small negative numbers stay small
      number((static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) << 1) ^
             static_cast<std::uint64_t>(static_cast<std::int64_t>(value) >> 63));
    else
      describe(*this, value);
  }

  std::string bytes;
  std::unordered_map<Name, std::uint64_t> ids;
  std::vector<std::string> texts;
};

class Reader {
public:
  explicit Reader(std::string_view bytes) : bytes(bytes) {}

  template <typename... T> void operator()(T &...values) { (read(values), ...); }

  bool header(std::string &error) {
    if (bytes.empty())
      return refuse(error, "is empty");
    if (bytes.substr(0, magic.size()) != magic.substr(0, bytes.size()))
      return refuse(error, bytes.substr(0, 5) == "unit " ? "holds facts as text, which cannot be read back"
                                                         : "is not a facts file");
    at = magic.size();
    const std::uint64_t version = number();
    if (!failed && version != formatVersion)
      return refuse(error, "is of another version of device-tidy (facts format " + std::to_string(version) +
                               ", this one reads " + std::to_string(formatVersion) + ")");
    const std::string tool(text());
    if (!failed && tool != DEVICE_TIDY_VERSION)
      return refuse(error, "was written by device-tidy " + tool + ", this one is " DEVICE_TIDY_VERSION);
    std::uint64_t sum = 0;
    for (int shift = 0; shift < 64 && !failed; shift += 8, ++at)
      if (at < bytes.size())
        sum |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at])) << shift;
      else
        failed = true;
    if (failed || checksum(bytes.substr(at)) != sum)
      return refuse(error, "is truncated or damaged");
    const std::uint64_t count = number();
    for (std::uint64_t i = 0; i < count && !failed; ++i)
      names.emplace_back(text());
    return !failed;
  }
  bool done() const { return !failed && at == bytes.size(); }

private:
  bool refuse(std::string &error, std::string reason) {
    error = std::move(reason);
    failed = true;
    return false;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at >= bytes.size()) {
        failed = true;
        return 0;
      }
      const auto byte = static_cast<unsigned char>(bytes[at++]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return value;
    }
    failed = true;
    return 0;
  }
  std::string_view text() {
    const std::uint64_t size = count();
    const std::string_view read = bytes.substr(std::min(at, bytes.size()), size);
    at += size;
    return read;
  }
  // A count that promises more items than bytes are left is damage, not a reason to reserve memory.
  std::uint64_t count() {
    const std::uint64_t size = number();
    if (at > bytes.size() || size > bytes.size() - at)
      failed = true;
    return failed ? 0 : size;
  }
  void read(Name &name) {
    const std::uint64_t id = number();
    if (id >= names.size())
      failed = true;
    else
      name = names[id];
  }
  void read(std::string &value) { value = text(); }
  template <typename T> void read(std::vector<T> &list) {
    list.resize(count());
    for (std::size_t i = 0; i < list.size() && !failed; ++i)
      read(list[i]);
  }
  template <typename K, typename V> void read(std::map<K, V> &map) {
    const std::uint64_t size = count();
    for (std::uint64_t i = 0; i < size && !failed; ++i) {
      K key{};
      read(key);
      read(map[key]);
    }
  }
  template <typename T> void read(T &value) {
    if constexpr (std::is_enum_v<T> || std::is_same_v<T, bool>) {
      value = static_cast<T>(number());
    } else if constexpr (std::is_integral_v<T>) {
      const std::uint64_t raw = number();
      value = static_cast<T>(static_cast<std::int64_t>(raw >> 1) ^ -static_cast<std::int64_t>(raw & 1));
    } else {
      describe(*this, value);
    }
  }

  std::string_view bytes;
  std::size_t at = 0;
  bool failed = false;
  std::vector<Name> names;
};

} // namespace

std::string writeFacts(const FactsFile &file) {
  Writer writer;
  writer(const_cast<FactsFile &>(file)); // the description is shared with reading, and so not const
  return writer.finish();
}

std::optional<FactsFile> readFacts(std::string_view bytes, std::string &error) {
  Reader reader(bytes);
  FactsFile file;
  if (reader.header(error))
    reader(file);
  if (reader.done())
    return file;
  if (error.empty())
    error = "is truncated or damaged";
  return std::nullopt;
}

std::string writeBinary(const std::vector<Unit> &units) {
  FactsFile file;
  file.units = units;
  return writeFacts(file);
}

std::optional<std::vector<Unit>> readBinary(std::string_view bytes, std::string &error) {
  std::optional<FactsFile> file = readFacts(bytes, error);
  return file ? std::optional(std::move(file->units)) : std::nullopt;
}

} // namespace devicetidy
