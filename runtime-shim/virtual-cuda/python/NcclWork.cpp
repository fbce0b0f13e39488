#include "NcclWork.h"

#include <ATen/core/ivalue_inl.h>
#include <c10/core/GradMode.h>

#include <algorithm>

namespace vcuda::python {

NcclWork::NcclWork(std::vector<WorkPtr> works, std::vector<at::Tensor> outputs, std::vector<at::Tensor> kept,
                   std::function<void()> finish)
    : works_(std::move(works)), outputs_(std::move(outputs)), kept_(std::move(kept)),
      finish_(std::move(finish)) {}

// Programs may drop the work of a collective, whose results they see later.
NcclWork::~NcclWork() {
  try {
    wait();
  } catch (const std::exception &) {
    // Told by the work of a later collective.
  }
}

void NcclWork::finish() {
  std::call_once(finished_, [this] {
    if (!finish_)
      return;
    c10::NoGradGuard noGrad;
    finish_();
    finish_ = {};
  });
}

bool NcclWork::isCompleted() {
  if (waited_)
    return true;
  if (!std::all_of(works_.begin(), works_.end(), [](const WorkPtr &work) { return work->isCompleted(); }))
    return false;
  if (isSuccess())
    finish();
  return true;
}

bool NcclWork::isSuccess() const {
  return std::all_of(works_.begin(), works_.end(), [](const WorkPtr &work) { return work->isSuccess(); });
}

std::exception_ptr NcclWork::exception() const {
  for (const WorkPtr &work : works_)
    if (std::exception_ptr error = work->exception())
      return error;
  return nullptr;
}

int NcclWork::sourceRank() const { return works_.empty() ? -1 : works_.front()->sourceRank(); }

bool NcclWork::wait(std::chrono::milliseconds timeout) {
  // Gloo's works can be waited for once.
  std::lock_guard<std::mutex> lock(waiting_);
  if (waited_.exchange(true))
    return true;
  for (const WorkPtr &work : works_)
    work->wait(timeout);
  finish();
  return true;
}

void NcclWork::abort() {
  for (const WorkPtr &work : works_)
    work->abort();
}

c10::intrusive_ptr<c10::ivalue::Future> NcclWork::getFuture() {
  // As NCCL's, which is marked completed at once and makes the stream wait: the one stream here is the host.
  auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
  try {
    wait();
    future->markCompleted(c10::IValue(outputs_));
  } catch (const std::exception &) {
    future->setError(std::current_exception());
  }
  return future;
}

} // namespace vcuda::python
