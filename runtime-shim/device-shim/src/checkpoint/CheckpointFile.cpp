#include "checkpoint/CheckpointFile.h"

#include "checkpoint/TensorDigest.h"
#include "files/ArchiveFile.h"

#include <device_shim/Error.h>

#include <torch/serialize/archive.h>

#include <unistd.h>

namespace device_shim::detail {
namespace {

void requireSaved(bool there, const char *what, const std::string &path) {
  if (!there)
    throw Error("'" + path + "' has no state of " + what +
                ", because save() was called without one; call load() without it");
}

} // namespace

void writeCheckpoint(const torch::nn::Module &root, const Named &values, const CheckpointExtras &extras,
                     const std::string &path) {
  torch::serialize::OutputArchive archive;
  writeModule(root, values, archive);
  writeExtras(archive, extras);
  writeArchive(archive, path);
}

CheckpointFile readCheckpoint(const torch::nn::Module &root, const std::string &path, WantedExtras wanted,
                              int rank) {
  if (access(path.c_str(), R_OK) != 0)
    throw Error("rank " + std::to_string(rank) + " cannot read '" + path +
                "'; every rank reads the file, so it must be on a file system they share");
  torch::serialize::InputArchive archive;
  readArchive(archive, path);
  CheckpointFile file;
  file.values = readModule(root, archive, path);
  file.digest = digestOf(file.values.parameters);
  if (wanted.optimizer || wanted.scaler)
    file.extras = readExtras(archive, path);
  requireSaved(!wanted.optimizer || !file.extras.groups.empty(), "an optimizer", path);
  requireSaved(!wanted.scaler || file.extras.scaler, "a GradScaler", path);
  return file;
}

} // namespace device_shim::detail
