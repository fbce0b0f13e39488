//===- ArchiveFile.h - archives on disk -------------------------*- C++ -*-===//
//
// How every file of this library is written and read.
//
// LibTorch writes an archive in place, and its writer ends the process when a disk is full. Here a file is
// complete or the one before: it is written under another name, reaches the disk, and takes the place of the
// old one in one step. A checksum at its end, in the comment that the zip format has there, finds bytes that
// changed later; torch::load() and Python's torch.load() pass over it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <torch/serialize/archive.h>

#include <string>

namespace device_shim::detail {

/// Writes `archive` to `path`; where that is a link, to the file it leads to. Removes what processes of this
/// machine left there when they died in it. \throws Error when it cannot be written, with the cause; the file
/// that was there is unchanged then.
void writeArchive(torch::serialize::OutputArchive &archive, const std::string &path);

/// Reads `path` into `archive`, tensors to the host. Files of torch::save() have no checksum and are read
/// without. \throws Error when it cannot be read, is not complete, or has changed since writeArchive().
void readArchive(torch::serialize::InputArchive &archive, const std::string &path);

} // namespace device_shim::detail
