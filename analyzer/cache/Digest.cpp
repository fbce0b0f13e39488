#include "analyzer/cache/Digest.h"

#include "DeviceTidyConfig.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <link.h>

#include <algorithm>
#include <cstring>

namespace devicetidy::cache {

std::string Digest::hex() const {
  return llvm::utohexstr(high, /*LowerCase=*/true, /*Width=*/16) +
         llvm::utohexstr(low, /*LowerCase=*/true, /*Width=*/16);
}

Digest digestOf(std::string_view content) {
  const auto hash =
      llvm::BLAKE3::hash<16>({reinterpret_cast<const std::uint8_t *>(content.data()), content.size()});
  Digest result;
  std::memcpy(&result.high, hash.data(), 8);
  std::memcpy(&result.low, hash.data() + 8, 8);
  return result;
}

DigestBuilder &DigestBuilder::add(std::string_view part) {
  add(static_cast<std::uint64_t>(part.size()));
  bytes += part;
  return *this;
}

DigestBuilder &DigestBuilder::add(std::uint64_t number) {
  for (int i = 0; i < 8; ++i, number >>= 8)
    bytes.push_back(static_cast<char>(number & 0xff));
  return *this;
}

namespace {

using Segment = ElfW(Phdr);
using NoteHead = ElfW(Nhdr);

// Looks for the build id in the notes of the object that has the code at `inside`.
struct BuildIdSearch {
  const char *inside;
  std::string_view id;
};

std::string_view buildIdIn(const char *notes, std::size_t size) {
  const auto padded = [](std::size_t length) { return (length + 3) / 4 * 4; };
  while (size >= sizeof(NoteHead)) {
    NoteHead note;
    std::memcpy(&note, notes, sizeof note);
    const std::size_t name = padded(note.n_namesz), length = sizeof note + name + padded(note.n_descsz);
    if (length > size)
      break;
    if (note.n_type == NT_GNU_BUILD_ID &&
        std::string_view(notes + sizeof note, note.n_namesz) == std::string_view("GNU", 4))
      return {notes + sizeof note + name, note.n_descsz};
    notes += length;
    size -= length;
  }
  return {};
}

int searchObject(dl_phdr_info *object, std::size_t, void *data) {
  auto &search = *static_cast<BuildIdSearch *>(data);
  const auto begin = [&](const Segment &part) {
    return reinterpret_cast<const char *>(object->dlpi_addr + part.p_vaddr);
  };
  const Segment *first = object->dlpi_phdr, *last = first + object->dlpi_phnum;
  const bool isOurs = std::any_of(first, last, [&](const Segment &part) {
    return part.p_type == PT_LOAD && search.inside >= begin(part) &&
           search.inside < begin(part) + part.p_memsz;
  });
  for (const Segment *part = first; isOurs && part != last; ++part)
    if (part->p_type == PT_NOTE && search.id.empty())
      search.id = buildIdIn(begin(*part), part->p_memsz);
  return isOurs ? 1 : 0;
}

// What the linker says this program is; where it says nothing, the bytes of the executable.
Digest digestOfProgram() {
  BuildIdSearch search{reinterpret_cast<const char *>(&toolDigest), {}};
  dl_iterate_phdr(searchObject, &search);
  if (!search.id.empty())
    return digestOf(search.id);
  const std::string path =
      llvm::sys::fs::getMainExecutable("device-tidy", reinterpret_cast<void *>(&toolDigest));
  const auto bytes = llvm::MemoryBuffer::getFile(path);
  return bytes ? digestOf((*bytes)->getBuffer()) : Digest();
}

} // namespace

const Digest &toolDigest() {
  static const Digest digest =
      DigestBuilder().add(DEVICE_TIDY_VERSION).add(DEVICE_TIDY_LLVM_VERSION).add(digestOfProgram()).finish();
  return digest;
}

} // namespace devicetidy::cache
