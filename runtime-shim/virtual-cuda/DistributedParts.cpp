// What c10d looks for in registries, by device type, and only libtorch_cuda puts there for CUDA.
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

namespace vcuda {
namespace {

// The times of the steps of PyTorch's own DistributedDataParallel, which asserts that there is a timer. The
// GPU has done what is asked of it when an operator returns, so the host's clock tells them.
class StepTimer final : public c10d::Timer {
public:
  explicit StepTimer(c10::Device) {}
  c10::optional<int64_t> measureDifference(Event start, Event end) override {
    const auto from = getTimestamp(start), to = getTimestamp(end);
    if (!from || !to || *to < *from)
      return c10::nullopt;
    return *to - *from;
  }
};

} // namespace
} // namespace vcuda

namespace c10d {
C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kCUDA, ::vcuda::StepTimer)
} // namespace c10d

// The process group of Gloo has works for device tensors; in newer releases that of all-reduce is in a
// registry, and without it the group goes on with a null pointer.
#ifdef USE_C10D_GLOO
#if __has_include(<torch/csrc/distributed/c10d/ProcessGroupGlooDetail.hpp>)
#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGlooDetail.hpp>

namespace vcuda {
namespace {

using Tensors = std::vector<at::Tensor>;
using GlooWork = c10d::ProcessGroupGloo::AsyncWork;
using GlooWorkPointer = c10::intrusive_ptr<GlooWork>;

// The CPU's work on copies in host memory, as libtorch_cuda has it: dense or sparse, any reduction.
class AllReduceWork final : public GlooWork {
public:
  AllReduceWork(std::shared_ptr<gloo::Context> context, Tensors &onDevice, const c10d::ReduceOp &reduction,
                uint32_t tag, uint64_t number, std::chrono::milliseconds timeout)
      : GlooWork(context, {onDevice}, c10d::OpType::ALLREDUCE, number, timeout), onDevice_(onDevice) {
    for (const at::Tensor &tensor : onDevice_)
      onHost_.push_back(tensor.to(at::kCPU));
    work_ = c10d::GlooAllreduceRegistry()->Create(at::kCPU, std::move(context), onHost_, reduction, tag,
                                                  number, timeout);
    TORCH_CHECK(work_, "virtual-cuda: this LibTorch has no all-reduce of CPU tensors over Gloo");
  }

  // In a thread of the group.
  void run() override {
    work_->run();
    for (size_t i = 0; i < onDevice_.size(); ++i)
      onDevice_[i].copy_(onHost_[i]);
  }

  const Tensors getInputTensors() override { return onDevice_; }
  const Tensors getOutputTensors() override { return onDevice_; }

private:
  Tensors onDevice_, onHost_;
  GlooWorkPointer work_;
};

GlooWorkPointer makeAllReduce(std::shared_ptr<gloo::Context> context, Tensors &inputs,
                              c10d::ReduceOp reduction, uint32_t tag, uint64_t number,
                              std::chrono::milliseconds timeout) {
  return c10::make_intrusive<AllReduceWork>(std::move(context), inputs, reduction, tag, number, timeout);
}

} // namespace
} // namespace vcuda

namespace c10d {
C10_REGISTER_TYPED_CREATOR(GlooAllreduceRegistry, at::kCUDA, &vcuda::makeAllReduce)
} // namespace c10d
#endif
#endif
