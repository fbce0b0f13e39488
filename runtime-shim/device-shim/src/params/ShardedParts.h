//===- ShardedParts.h - the parts of one rank -------------------*- C++ -*-===//
//
// Which tensors are one rank's parts of something that is spread over all ranks.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <device_shim/Communicator.h>

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace device_shim::detail {

/// While it lives, `part` is known as this rank's part of what is spread over `ranks`.
class ShardedPart {
public:
  ShardedPart(const at::Tensor &part, std::shared_ptr<Communicator> ranks);
  ~ShardedPart();
  ShardedPart(const ShardedPart &) = delete;
  ShardedPart &operator=(const ShardedPart &) = delete;

private:
  at::Tensor part; // kept, so that no other tensor gets its address
};

/// The communicators over which tensors among these are spread, each once, in the order of the tensors.
std::vector<std::shared_ptr<Communicator>> spreadOver(const std::vector<at::Tensor> &tensors);

/// Whether one of these was such a part, but is not any more.
bool anyEnded(const std::vector<at::Tensor> &tensors);

} // namespace device_shim::detail
