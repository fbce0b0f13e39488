#include "analyzer/cache/Digest.h"

#include "DeviceTidyConfig.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/BuildID.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"

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

// What the linker says the executable at `path` is; where it says nothing, its bytes.
Digest digestOfExecutable(const std::string &path) {
  auto opened = llvm::object::ObjectFile::createObjectFile(path);
  if (!opened) {
    llvm::consumeError(opened.takeError());
    return {};
  }
  const llvm::object::BuildIDRef id = llvm::object::getBuildID(opened->getBinary());
  return id.empty() ? digestOf(opened->getBinary()->getData())
                    : digestOf({reinterpret_cast<const char *>(id.data()), id.size()});
}

} // namespace

const Digest &toolDigest() {
  static const Digest digest = DigestBuilder()
                                   .add(DEVICE_TIDY_VERSION)
                                   .add(DEVICE_TIDY_LLVM_VERSION)
                                   .add(digestOfExecutable(llvm::sys::fs::getMainExecutable(
                                       "device-tidy", reinterpret_cast<void *>(&toolDigest))))
                                   .finish();
  return digest;
}

} // namespace devicetidy::cache
