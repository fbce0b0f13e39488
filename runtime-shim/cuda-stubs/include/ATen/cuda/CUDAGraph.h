/// Stand-in for ATen/cuda/CUDAGraph.h of PyTorch. Work of virtual GPUs is done when a call returns, so there
/// is nothing to capture: programs compile, and are told when they try.
#pragma once

#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <string>
#include <utility>

namespace at {
namespace cuda {

using MempoolId_t = std::pair<uint64_t, uint64_t>;

inline MempoolId_t graph_pool_handle() { return {0, 0}; }

struct CUDAGraph {
  template <typename... Arguments> void capture_begin(Arguments &&...) { refuse(); }
  void capture_end() { refuse(); }
  void replay() { refuse(); }
  void reset() {}
  MempoolId_t pool() { return graph_pool_handle(); }
  void enable_debug_mode() {}
  void debug_dump(const std::string &) { refuse(); }

private:
  static void refuse() {
    TORCH_CHECK(false, "virtual GPUs cannot capture CUDA graphs; run the program without them there");
  }
};

} // namespace cuda
} // namespace at
