#include "files/ArchiveFile.h"

#include "files/Checksum.h"
#include "files/NewFile.h"

#include <device_shim/Error.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

namespace device_shim::detail {
namespace {

using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

// The comment of the zip file. The checksum is that of all before it, with the length of the comment, two
// bytes, as the zero that LibTorch writes.
const std::string kMark = "device_shim crc32 ";
constexpr size_t kDigits = 8;
constexpr size_t kLengthBytes = 2;

std::string commentFor(const Checksum &sum) {
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof digits, "%08x", sum.value());
  return kMark + digits;
}

// The comment at the end of a file of `size` bytes; nothing when it has none of ours.
std::optional<std::string> readComment(std::ifstream &file, size_t size) {
  std::string comment(kMark.size() + kDigits, '\0');
  if (size < comment.size() + kLengthBytes)
    return std::nullopt;
  file.seekg(static_cast<std::streamoff>(size - comment.size()));
  file.read(comment.data(), static_cast<std::streamsize>(comment.size()));
  return file && comment.compare(0, kMark.size(), kMark) == 0 ? std::optional(comment) : std::nullopt;
}

// Whether the file ends in the comment that its end record announces: all else is there, so readers of zip
// files do not mind.
bool endsInComment(std::ifstream &file, size_t size) {
  constexpr size_t kEndRecord = 22, kMostComment = 0xffff;
  std::string tail(std::min(size, kEndRecord + kMostComment), '\0');
  file.seekg(static_cast<std::streamoff>(size - tail.size()));
  file.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  const auto record = tail.rfind("PK\5\6");
  if (!file || record == std::string::npos || tail.size() - record < kEndRecord)
    return false;
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(tail[record + at]); };
  const size_t length = byte(20) + 256u * byte(21);
  return tail.size() - record - kEndRecord < length;
}

Checksum sumOf(std::ifstream &file, size_t size) {
  Checksum sum;
  std::vector<char> piece(size_t(1) << 20);
  file.seekg(0);
  for (size_t left = size; left > 0 && file;) {
    file.read(piece.data(), static_cast<std::streamsize>(std::min(left, piece.size())));
    sum.add(piece.data(), static_cast<size_t>(file.gcount()));
    left -= static_cast<size_t>(file.gcount());
  }
  return sum;
}

Error incomplete(const std::string &path, const std::string &why) {
  return Error("'" + path + "' is not a complete file of save() or torch::save(): " + why);
}

void requireUnchanged(const std::string &path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file)
    throw Error("cannot read '" + path + "': " + std::strerror(errno));
  const auto size = static_cast<size_t>(file.tellg());
  const auto comment = readComment(file, size);
  if (!comment && endsInComment(file, size))
    throw incomplete(path, "its end is missing");
  if (!comment)
    return;
  Checksum sum = sumOf(file, size - comment->size() - kLengthBytes);
  const char noComment[kLengthBytes] = {};
  sum.add(noComment, sizeof noComment);
  if (commentFor(sum) != *comment)
    throw Error("'" + path +
                "' has changed since it was written: its checksum does not fit. Use a copy, or an "
                "older file, and check the disk");
}

std::string firstLine(const std::string &text) { return text.substr(0, text.find('\n')); }

} // namespace

void writeArchive(OutputArchive &archive, const std::string &path) {
  NewFile file(path);
  Checksum sum;
  archive.save_to([&](const void *data, size_t size) {
    file.append(data, size);
    sum.add(data, size);
    return size; // of an error the archive's writer learns nothing: it would end the process
  });
  const auto comment = commentFor(sum);
  file.setLastTwoBytes(static_cast<uint16_t>(comment.size()));
  file.append(comment.data(), comment.size());
  file.replace();
}

void readArchive(InputArchive &archive, const std::string &path) {
  requireUnchanged(path);
  try {
    archive.load_from(path, torch::Device(at::kCPU));
  } catch (const c10::Error &error) {
    throw incomplete(path, firstLine(error.what_without_backtrace()));
  }
}

} // namespace device_shim::detail
