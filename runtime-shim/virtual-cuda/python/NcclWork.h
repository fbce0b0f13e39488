//===- NcclWork.h - a collective that is under way --------------*- C++ -*-===//
//
// What collectives of the virtual NCCL return: Gloo's work, with the device tensors as its results.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

namespace vcuda::python {

class NcclWork final : public c10d::Work {
public:
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  /// `kept` lives until the works are done; `finish` runs once then.
  explicit NcclWork(std::vector<WorkPtr> works, std::vector<at::Tensor> outputs = {},
                    std::vector<at::Tensor> kept = {}, std::function<void()> finish = {});
  ~NcclWork() override;

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override { return outputs_; }
  void synchronize() override { wait(); }
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

private:
  void finish();

  std::vector<WorkPtr> works_;
  std::vector<at::Tensor> outputs_;
  std::vector<at::Tensor> kept_;
  std::function<void()> finish_;
  std::once_flag finished_;
  std::mutex waiting_;
  std::atomic<bool> waited_{false};
};

} // namespace vcuda::python
