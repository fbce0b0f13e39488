#include "checkpoint/ModuleArchive.h"

#include <device_shim/Error.h>
#include <device_shim/Lora.h>

#include <sstream>

namespace device_shim::detail {
namespace {

using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

void writeChild(const torch::nn::Module &module, const std::string &path, const Named &values,
                OutputArchive &archive) {
  for (const auto &entry : module.named_parameters(/*recurse=*/false)) {
    const auto found = values.find(path + entry.key());
    archive.write(entry.key(), found == values.end() ? entry.value() : found->second);
  }
  for (const auto &entry : module.named_buffers(/*recurse=*/false)) {
    const auto found = values.find(path + entry.key());
    archive.write(entry.key(), found == values.end() ? entry.value().cpu() : found->second,
                  /*is_buffer=*/true);
  }
  for (const auto &child : module.named_children()) {
    if (!child.value()->is_serializable())
      continue;
    OutputArchive nested(archive.compilation_unit());
    writeChild(*child.value(), path + child.key() + ".", values, nested);
    archive.write(child.key(), nested);
  }
}

void readChild(const torch::nn::Module &module, const std::string &path, InputArchive &archive,
               ModuleValues &found) {
  for (const auto &entry : module.named_parameters(/*recurse=*/false)) {
    at::Tensor value;
    if (archive.try_read(entry.key(), value))
      found.parameters[path + entry.key()] = value;
  }
  for (const auto &entry : module.named_buffers(/*recurse=*/false)) {
    at::Tensor value;
    if (archive.try_read(entry.key(), value, /*is_buffer=*/true))
      found.buffers[path + entry.key()] = value;
  }
  for (const auto &child : module.named_children()) {
    InputArchive nested;
    if (child.value()->is_serializable() && archive.try_read(child.key(), nested))
      readChild(*child.value(), path + child.key() + ".", nested, found);
  }
}

// A file holds all that torch::load() wants to have; what a module that is not serializable holds is in none.
void requireBuffers(const torch::nn::Module &module, const std::string &prefix, const Named &found,
                    const std::string &path) {
  for (const auto &entry : module.named_buffers(/*recurse=*/false)) {
    const auto name = prefix + entry.key();
    const auto value = found.find(name);
    if (value == found.end())
      throw Error("'" + path + "' has no buffer '" + name + "'; it was saved from another model");
    requireSizes(entry.value().sizes(), value->second, name, path);
  }
  for (const auto &child : module.named_children())
    if (child.value()->is_serializable())
      requireBuffers(*child.value(), prefix + child.key() + ".", found, path);
}

void requireUnmergedBelow(const torch::nn::Module &module, const std::string &prefix) {
  if (const auto *layer = dynamic_cast<const LoraLinearImpl *>(&module); layer && layer->merged())
    throw UsageError("the adapters of '" + prefix +
                     "' are merged into their base, to which save() and load() would add them again; call "
                     "unmerge() first");
  for (const auto &child : module.named_children())
    requireUnmergedBelow(*child.value(), prefix.empty() ? child.key() : prefix + "." + child.key());
}

} // namespace

void requireSizes(at::IntArrayRef wanted, const at::Tensor &found, const std::string &name,
                  const std::string &path) {
  if (found.sizes() == wanted)
    return;
  std::ostringstream text;
  text << "'" << path << "' has '" << name << "' with the shape " << found.sizes() << " instead of "
       << wanted;
  throw Error(text.str());
}

void writeModule(const torch::nn::Module &root, const Named &values, OutputArchive &archive) {
  writeChild(root, "", values, archive);
}

ModuleValues readModule(const torch::nn::Module &root, InputArchive &archive, const std::string &path) {
  ModuleValues found;
  readChild(root, "", archive, found);
  requireBuffers(root, "", found.buffers, path);
  return found;
}

void setBuffers(const torch::nn::Module &root, const Named &values) {
  for (auto &entry : root.named_buffers()) {
    const auto found = values.find(entry.key());
    if (found != values.end())
      entry.value().copy_(found->second);
  }
}

void requireUnmerged(const torch::nn::Module &root) { requireUnmergedBelow(root, ""); }

} // namespace device_shim::detail
