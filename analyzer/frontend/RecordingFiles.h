//===- RecordingFiles.h - remembers what a parse looked at ------*- C++ -*-===//
//
// A file system that records which files a parse depends on, for the cache.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/FileTrace.h"

#include "clang/Basic/FileManager.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/VirtualFileSystem.h"

#include <string>

namespace devicetidy::frontend {

/// Forwards to the real file system and records the files that were opened, the paths that do not exist, and
/// the directories that were listed. For one thread.
class RecordingFiles : public llvm::vfs::ProxyFileSystem {
public:
  explicit RecordingFiles(llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> real)
      : ProxyFileSystem(std::move(real)) {}

  llvm::ErrorOr<llvm::vfs::Status> status(const llvm::Twine &path) override;
  bool exists(const llvm::Twine &path) override;
  llvm::ErrorOr<std::unique_ptr<llvm::vfs::File>> openFileForRead(const llvm::Twine &path) override;
  llvm::vfs::directory_iterator dir_begin(const llvm::Twine &directory, std::error_code &code) override;

  /// What was accessed so far; paths as absolutePath(files, ...) makes them.
  FileTrace trace(clang::FileManager &files) const;

private:
  std::string absolute(const llvm::Twine &path) const;

  struct Read {
    std::uint64_t size = 0, inode = 0;
    std::int64_t modified = 0;
  };
  llvm::StringMap<Read> reads;
  llvm::StringSet<> absent, listed;
};

} // namespace devicetidy::frontend
