#include "analyzer/frontend/RecordingFiles.h"

#include "analyzer/frontend/LaunchSpelling.h"
#include "analyzer/frontend/SourceFiles.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <chrono>

namespace devicetidy::frontend {
namespace {

bool namesNothing(std::error_code code) {
  return code == std::errc::no_such_file_or_directory || code == std::errc::not_a_directory;
}

/// A CUDA source with its launches as clang reads them.
class CudaSource : public llvm::vfs::File {
public:
  explicit CudaSource(std::unique_ptr<llvm::vfs::File> file) : file(std::move(file)) {}

  llvm::ErrorOr<llvm::vfs::Status> status() override { return file->status(); }
  llvm::ErrorOr<std::string> getName() override { return file->getName(); }
  std::error_code close() override { return file->close(); }
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> getBuffer(const llvm::Twine &name, std::int64_t size,
                                                               bool needsEnd, bool isVolatile) override {
    auto buffer = file->getBuffer(name, size, needsEnd, isVolatile);
    if (!buffer)
      return buffer;
    std::string text = (*buffer)->getBuffer().str();
    return joinLaunches(text) ? llvm::MemoryBuffer::getMemBufferCopy(text, name) : std::move(buffer);
  }

private:
  std::unique_ptr<llvm::vfs::File> file;
};

bool isCudaSource(const llvm::Twine &path) {
  llvm::SmallString<256> storage;
  const llvm::StringRef extension = llvm::sys::path::extension(path.toStringRef(storage));
  return extension == ".cu" || extension == ".cuh";
}

} // namespace

std::string RecordingFiles::absolute(const llvm::Twine &path) const {
  llvm::SmallString<256> result;
  path.toVector(result);
  makeAbsolute(result);
  return result.str().str();
}

llvm::ErrorOr<llvm::vfs::Status> RecordingFiles::status(const llvm::Twine &path) {
  auto result = ProxyFileSystem::status(path);
  if (!result && namesNothing(result.getError()))
    absent.insert(absolute(path));
  return result;
}

bool RecordingFiles::exists(const llvm::Twine &path) {
  const bool result = ProxyFileSystem::exists(path);
  if (!result)
    absent.insert(absolute(path));
  return result;
}

llvm::ErrorOr<std::unique_ptr<llvm::vfs::File>> RecordingFiles::openFileForRead(const llvm::Twine &path) {
  auto result = ProxyFileSystem::openFileForRead(path);
  if (!result) {
    if (namesNothing(result.getError()))
      absent.insert(absolute(path));
    return result;
  }
  // From the open file, so that what is noted is what will be read.
  if (const auto status = (*result)->status(); status && !status->isDirectory()) {
    using namespace std::chrono;
    const auto modified = duration_cast<nanoseconds>(status->getLastModificationTime().time_since_epoch());
    reads[absolute(path)] = {status->getSize(), status->getUniqueID().getFile(), modified.count()};
  }
  if (isCudaSource(path))
    return std::make_unique<CudaSource>(std::move(*result));
  return result;
}

llvm::vfs::directory_iterator RecordingFiles::dir_begin(const llvm::Twine &directory, std::error_code &code) {
  auto result = ProxyFileSystem::dir_begin(directory, code);
  if (namesNothing(code))
    absent.insert(absolute(directory));
  else
    listed.insert(absolute(directory));
  return result;
}

FileTrace RecordingFiles::trace(clang::FileManager &files) const {
  FileTrace result;
  for (const auto &entry : reads) {
    const Read &read = entry.getValue();
    result.reads.push_back({Name(absolutePath(files, entry.getKey())), read.size, read.inode, read.modified});
  }
  llvm::sort(result.reads, [](const auto &a, const auto &b) { return a.path < b.path; });
  result.reads.erase(std::unique(result.reads.begin(), result.reads.end(),
                                 [](const auto &a, const auto &b) { return a.path == b.path; }),
                     result.reads.end());
  for (const auto &entry : absent)
    result.absent.push_back(entry.getKey().str());
  for (const auto &entry : listed)
    result.directories.push_back(entry.getKey().str());
  llvm::sort(result.absent);
  llvm::sort(result.directories);
  return result;
}

} // namespace devicetidy::frontend
