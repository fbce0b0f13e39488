//===- Binary.cpp - one description of the format, used both ways ------===//
//
// `describe` names the members of each struct once; a Writer and a Reader walk the same description, so the
// two sides cannot drift apart.
//
//===----------------------------------------------------------------------===//
#include "analyzer/facts/Binary.h"

#include <type_traits>
#include <unordered_map>

namespace devicetidy {
namespace {

constexpr std::string_view magic = "DTFACTS";
constexpr std::uint64_t formatVersion = 2; ///< raise it with every change of `describe` or of the structs

template <typename A> void describe(A &archive, Location &x) {
  archive(x.file, x.line, x.column, x.endLine, x.endColumn);
}
template <typename A> void describe(A &archive, Operand &x) {
  archive(x.reg, x.isAddress, x.type, x.where, x.text);
}
template <typename A> void describe(A &archive, Fact &x) {
  archive(x.kind, x.literal, x.hasObject, x.isVirtual, x.isIndirect, x.resultIsAddress, x.isDiscarded,
          x.inMacro, x.result, x.number, x.name, x.target, x.type, x.operands, x.captures, x.templateTypes,
          x.templateNumbers, x.where);
}
template <typename A> void describe(A &archive, Terminator &x) {
  archive(x.kind, x.value, x.successors, x.cases, x.entersLoop, x.where);
}
template <typename A> void describe(A &archive, Block &x) {
  archive(x.facts, x.terminator, x.handler, x.isLoopHead, x.variesInLoop, x.tripCount);
}
template <typename A> void describe(A &archive, Variable &x) {
  archive(x.name, x.type, x.isReference, x.isConst, x.where);
}
template <typename A> void describe(A &archive, Function &x) {
  archive(x.id, x.name, x.className, x.resultType, x.resultIsReference, x.isConstructor, x.isDestructor,
          x.isStatic, x.isConst, x.isVirtual, x.isLambda, x.isMain, x.hasBody, x.isVariadicTail, x.overrides,
          x.paramCount, x.requiredParams, x.locals, x.blocks, x.registerCount, x.where);
}
template <typename A> void describe(A &archive, Field &x) { archive(x.name, x.type, x.isReference, x.where); }
template <typename A> void describe(A &archive, Type &x) {
  archive(x.id, x.kind, x.templateName, x.args, x.numbers, x.pointee, x.isProject, x.isPolymorphic,
          x.isAbstract, x.isLambda, x.bases, x.fields, x.constructors, x.methods, x.where);
}
template <typename A> void describe(A &archive, Global &x) {
  archive(x.id, x.name, x.type, x.isConst, x.where);
}
template <typename A> void describe(A &archive, Unit &x) {
  archive(x.mainFile, x.objects, x.torchMajor, x.torchMinor, x.functions, x.types, x.globals, x.globalInit,
          x.parseErrors, x.hasFatalError, x.opaqueExpressions, x.skippedFunctions, x.files);
}

class Writer {
public:
  template <typename... T> void operator()(T &...values) { (write(values), ...); }

  std::string finish(const std::string &body) {
    std::string result(magic);
    bytes.swap(result);
    number(formatVersion);
    number(texts.size());
    for (const std::string &text : texts)
      string(text);
    bytes += body;
    return std::move(bytes);
  }

  std::string bytes;

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

  std::unordered_map<Name, std::uint64_t> ids;
  std::vector<std::string> texts;
};

class Reader {
public:
  explicit Reader(std::string_view bytes) : bytes(bytes) {}

  template <typename... T> void operator()(T &...values) { (read(values), ...); }

  bool header(std::string &error) {
    if (bytes.substr(0, magic.size()) != magic) {
      error = "this is no facts file";
      return false;
    }
    at = magic.size();
    if (const std::uint64_t version = number(); version != formatVersion) {
      error = "the facts were written by another version of device-tidy (format " + std::to_string(version) +
              ", this one reads " + std::to_string(formatVersion) + "); write them again";
      return false;
    }
    const std::uint64_t count = number();
    for (std::uint64_t i = 0; i < count && !failed; ++i)
      names.emplace_back(string());
    return !failed;
  }
  bool done() const { return !failed && at == bytes.size(); }

private:
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
  std::string string() {
    const std::uint64_t size = number();
    if (failed || size > bytes.size() - at) {
      failed = true;
      return {};
    }
    at += size;
    return std::string(bytes.substr(at - size, size));
  }
  // A count that promises more items than bytes are left is damage, not a reason to reserve memory.
  std::uint64_t count() {
    const std::uint64_t size = number();
    if (size > bytes.size() - at)
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
  void read(std::string &text) { text = string(); }
  template <typename T> void read(std::vector<T> &list) {
    const std::uint64_t size = count();
    for (std::uint64_t i = 0; i < size && !failed; ++i) {
      T item{};
      read(item);
      list.push_back(std::move(item));
    }
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

std::string writeBinary(const std::vector<Unit> &units) {
  Writer writer;
  writer(const_cast<std::vector<Unit> &>(units)); // the description is shared with reading, and so not const
  const std::string body = std::move(writer.bytes);
  writer.bytes.clear();
  return writer.finish(body);
}

std::optional<std::vector<Unit>> readBinary(std::string_view bytes, std::string &error) {
  Reader reader(bytes);
  std::vector<Unit> units;
  if (reader.header(error))
    reader(units);
  if (reader.done())
    return units;
  if (error.empty())
    error = "the facts are truncated or damaged; write them again";
  return std::nullopt;
}

} // namespace devicetidy
