/// Stand-in for torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp of PyTorch, whose class is there in builds
/// with NCCL only. Nothing implements it: it is for reading.
#pragma once

#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#define C10D_NCCL_CHECK(status, ...) TORCH_CHECK((status) == ncclSuccess, "NCCL error in: ", #status)

namespace c10d {

class NCCLComm {
public:
  ncclComm_t getNcclComm();
  void ncclCommAbort();
  static std::shared_ptr<NCCLComm> create(int count, int rank, ncclUniqueId id);
  ncclComm_t ncclComm_;
};

class ProcessGroupNCCL : public ProcessGroup {
public:
  struct Options : torch::CustomClassHolder {
    static c10::intrusive_ptr<Options> create(bool isHighPriority = false);
    std::chrono::milliseconds timeout;
    bool is_high_priority_stream = false;
  };

  ProcessGroupNCCL(const c10::intrusive_ptr<Store> &store, int rank, int size,
                   c10::intrusive_ptr<Options> options = Options::create());
  ~ProcessGroupNCCL() override;
  c10::intrusive_ptr<Options> getOptions();
  static void groupStart();
  static void groupEnd();
  std::string getNCCLVersion();
  template <typename... Arguments> ncclComm_t getNCCLComm(Arguments &&...);

protected:
  template <typename... Arguments> void broadcastUniqueNCCLID(ncclUniqueId *id, Arguments &&...);

  c10::intrusive_ptr<Store> store_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::vector<std::shared_ptr<NCCLComm>>> devNCCLCommMap_;
  std::unordered_map<std::string, std::vector<at::cuda::CUDAStream>> ncclStreams_;
};

} // namespace c10d
