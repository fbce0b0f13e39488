//===- NewFile.h - a file that takes the place of another -------*- C++ -*-===//
//
// A file that is written under another name first. Errors are kept until the end: LibTorch's writer cannot
// take any.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace device_shim::detail {

class NewFile {
public:
  /// Removes what dead processes of this machine left of `path`.
  explicit NewFile(const std::string &path);
  /// Without replace() nothing is left.
  ~NewFile();
  NewFile(const NewFile &) = delete;
  NewFile &operator=(const NewFile &) = delete;

  void append(const void *data, size_t size);
  /// Overwrites two bytes at the end, the lower one first.
  void setLastTwoBytes(uint16_t value);
  /// The file is on the disk, in the place of the old one. \throws Error for the first error of all calls.
  void replace();

private:
  void keepError(const char *what);

  std::string path;      ///< where links lead to
  std::string temporary; ///< its name meanwhile
  int descriptor = -1;
  std::string problem;
};

} // namespace device_shim::detail
