#include <device_shim/Communicator.h>

#include "base/FlatCopy.h"
#include "base/NormalTensors.h"
#include "comm/Backing.h"

#include <ATen/ATen.h>
#include <device_shim/Error.h>

#include <limits>

namespace device_shim {
namespace {

using detail::Backing;
using Collectives = compat::Collectives;

c10d::ReduceOp reduceOp(Reduction reduction) {
  switch (reduction) {
  case Reduction::maximum:
    return c10d::ReduceOp::MAX;
  case Reduction::minimum:
    return c10d::ReduceOp::MIN;
  case Reduction::sum:
    break;
  }
  return c10d::ReduceOp::SUM;
}

const char *nameOf(Reduction reduction) {
  return reduction == Reduction::maximum ? "maximum" : reduction == Reduction::minimum ? "minimum" : "sum";
}

// "12 x Float", by which ranks are compared.
std::string elements(const at::Tensor &tensor) {
  return std::to_string(tensor.numel()) + " x " + c10::toString(tensor.scalar_type());
}

// The types that both backends add in all LibTorch releases, and those that travel as one of them.
bool canBeReduced(at::ScalarType type) {
  switch (type) {
  case at::kFloat:
  case at::kDouble:
  case at::kHalf:
  case at::kBFloat16:
  case at::kChar:
  case at::kByte:
  case at::kInt:
  case at::kLong:
  case at::kBool:
    return true;
  default:
    return false;
  }
}

void requireReducible(const at::Tensor &tensor) {
  if (tensor.layout() != at::kStrided)
    throw UsageError("all_reduce takes dense tensors; make it one with to_dense()");
  if (!canBeReduced(tensor.scalar_type()))
    throw UsageError(
        std::string("all_reduce cannot reduce elements of type ") + c10::toString(tensor.scalar_type()) +
        "; convert the tensor to a floating type or to a usual integer type first, a complex one "
        "with view_as_real()");
}

void requireRank(const char *name, int root, int size) {
  if (root < 0 || root >= size)
    throw UsageError(std::string(name) + " from rank " + std::to_string(root) + ", but the job has " +
                     std::to_string(size) + (size == 1 ? " rank" : " ranks") + ", counted from 0");
}

// Where and as what a tensor travels: NCCL takes CUDA tensors only, Gloo of 1.13 adds no bfloat16 and no
// bool.
at::Tensor forReducing(const Backing &backing, const at::Tensor &tensor) {
  auto options = tensor.options();
  if (backing.job().nccl && !tensor.is_cuda())
    options = options.device(backing.job().device);
  const auto type = tensor.scalar_type();
  if (!backing.job().nccl && type == at::kBFloat16)
    options = options.dtype(at::kFloat);
  if (type == at::kBool)
    options = options.dtype(at::kByte);
  // Itself where it can be: Gloo's threads hold it for a moment longer than the operation.
  const bool plain = !tensor.requires_grad() && !tensor.is_inference();
  return (plain ? tensor : tensor.detach()).to(options).contiguous();
}

// Data that is only moved is sent as bytes, for any type.
at::Tensor asBytes(const at::Tensor &contiguous) { return contiguous.detach().view({-1}).view(at::kByte); }

at::Tensor onWire(const Backing &backing, const at::Tensor &tensor) {
  auto moved = tensor.detach().contiguous();
  return backing.job().nccl && !moved.is_cuda() ? moved.to(backing.job().device) : moved;
}

void requireFlat(const char *name, const at::Tensor &whole, const at::Tensor &part, int size) {
  if (!whole.is_contiguous() || !part.is_contiguous() || whole.dim() != 1 || part.dim() != 1 ||
      whole.numel() != part.numel() * size)
    throw UsageError(std::string(name) + " takes contiguous vectors of " + std::to_string(size) +
                     " * n and n elements, not of " + std::to_string(whole.numel()) + " and " +
                     std::to_string(part.numel()));
}

// `widened`: the sum may have a type that holds more than that of what is added.
void requireSameKind(const char *name, const at::Tensor &input, const at::Tensor &output, bool widened) {
  const auto from = input.scalar_type(), to = output.scalar_type();
  if (from != to && !(widened && at::promote_types(from, to) == to))
    throw UsageError(std::string(name) + " of elements of type " + c10::toString(from) +
                     " into an output of type " + c10::toString(to) + "; convert the input" +
                     (widened ? ", or make the output as wide" : ", or make the output of its type"));
  if (input.device() != output.device())
    throw DeviceError(std::string(name) + " has its input on " + input.device().str() +
                      " and its output on " + output.device().str() + "; move one of them");
}

} // namespace

Communicator::Communicator(std::shared_ptr<Backing> connected) : backing(std::move(connected)) {}
Communicator::~Communicator() = default;

int Communicator::rank() const { return backing->job().rank; }
int Communicator::size() const { return backing->job().size; }
int Communicator::local_rank() const { return backing->job().localRank; }
at::Device Communicator::device() const { return backing->job().device; }

std::string Communicator::backend() const {
  if (backing->isAlone())
    return "none";
  return backing->job().nccl ? "nccl" : "gloo";
}

Pending Communicator::all_reduce_async(const at::Tensor &tensor, Reduction reduction) {
  requireReducible(tensor);
  if (backing->isAlone())
    return {};
  detail::NormalTensors normal;
  const auto what = std::string("all_reduce of ") + elements(tensor) + ", " + nameOf(reduction);
  if (tensor.numel() == 0)
    return backing->start("all_reduce", what, {tensor}, nullptr, nullptr);
  auto travelling = forReducing(*backing, tensor);
  c10d::AllreduceOptions options;
  options.reduceOp = reduceOp(reduction);
  std::function<void()> finish;
  if (!travelling.is_same(tensor) && travelling.data_ptr() != tensor.data_ptr())
    finish = [travelling, target = detail::writable(tensor)] {
      detail::NormalTensors guard;
      target.copy_(travelling);
    };
  auto call = [list = std::vector<at::Tensor>{travelling}, options](Collectives &group) mutable {
    return group.allreduce(list, options);
  };
  return backing->start("all_reduce", what, {travelling, tensor}, std::move(call), std::move(finish));
}

void Communicator::all_reduce(const at::Tensor &tensor, Reduction reduction) {
  all_reduce_async(tensor, reduction).wait();
}

void Communicator::broadcast(const at::Tensor &tensor, int root) {
  requireRank("broadcast", root, size());
  if (backing->isAlone())
    return;
  detail::NormalTensors normal;
  const auto what = "broadcast of " + elements(tensor) + " from rank " + std::to_string(root);
  if (tensor.numel() == 0)
    return backing->start("broadcast", what, {tensor}, nullptr, nullptr).wait();
  auto travelling = onWire(*backing, tensor);
  c10d::BroadcastOptions options;
  options.rootRank = root;
  auto call = [list = std::vector<at::Tensor>{asBytes(travelling)}, options](Collectives &group) mutable {
    return group.broadcast(list, options);
  };
  backing->start("broadcast", what, {travelling}, std::move(call), nullptr).wait();
  if (travelling.data_ptr() != tensor.data_ptr() && rank() != root)
    detail::writable(tensor).copy_(travelling);
}

void Communicator::broadcast(const std::vector<at::Tensor> &tensors, int root) {
  requireRank("broadcast", root, size());
  if (backing->isAlone())
    return;
  constexpr int64_t kChunkBytes = int64_t(4) << 20;
  for (const auto &chunk : detail::chunksOfOneKind(tensors, kChunkBytes)) {
    if (chunk.size() == 1) {
      broadcast(chunk.front(), root);
      continue;
    }
    auto flat = detail::flattened(chunk);
    broadcast(flat, root);
    if (rank() != root)
      detail::copyBack(flat, chunk);
  }
}

Pending Communicator::all_gather_async(const at::Tensor &output, const at::Tensor &input) {
  detail::NormalTensors normal;
  requireFlat("all_gather", output, input, size());
  requireSameKind("all_gather", input, output, /*widened=*/false);
  if (backing->isAlone()) {
    if (output.data_ptr() != input.data_ptr())
      detail::writable(output).copy_(input);
    return {};
  }
  const auto what = "all_gather of " + elements(input);
  if (backing->job().nccl) {
    auto call = [whole = output.detach(), part = input.detach()](Collectives &group) mutable {
      return group._allgather_base(whole, part);
    };
    return backing->start("all_gather", what, {output, input}, std::move(call), nullptr);
  }
  std::vector<std::vector<at::Tensor>> parts = {asBytes(detail::writable(output)).chunk(size())};
  auto call = [parts, own = std::vector<at::Tensor>{asBytes(input)}](Collectives &group) mutable {
    return group.allgather(parts, own);
  };
  return backing->start("all_gather", what, {output, input}, std::move(call), nullptr);
}

void Communicator::all_gather(const at::Tensor &output, const at::Tensor &input) {
  all_gather_async(output, input).wait();
}

Pending Communicator::reduce_scatter_async(const at::Tensor &output, const at::Tensor &input) {
  detail::NormalTensors normal;
  requireFlat("reduce_scatter", input, output, size());
  requireSameKind("reduce_scatter", input, output, /*widened=*/true);
  if (backing->isAlone()) {
    detail::writable(output).copy_(input);
    return {};
  }
  const auto what = "reduce_scatter of " + elements(input);
  if (backing->job().nccl) {
    auto sum = output.scalar_type() == input.scalar_type() ? output.detach()
                                                           : at::empty_like(output, input.options());
    std::function<void()> finish;
    if (sum.data_ptr() != output.data_ptr())
      finish = [sum, target = detail::writable(output)] {
        detail::NormalTensors guard;
        target.copy_(sum);
      };
    auto call = [sum, whole = input.detach()](Collectives &group) mutable {
      return group._reduce_scatter_base(sum, whole);
    };
    return backing->start("reduce_scatter", what, {sum, input, output}, std::move(call), std::move(finish));
  }
  auto received = at::empty_like(input, at::MemoryFormat::Contiguous);
  auto call = [to = asBytes(received), from = asBytes(input)](Collectives &group) mutable {
    std::vector<int64_t> none;
    return group.alltoall_base(to, from, none, none);
  };
  auto addParts = [received, target = detail::writable(output), ranks = size()]() mutable {
    detail::NormalTensors guard;
    auto parts = received.view({ranks, -1});
    const bool half = received.scalar_type() == at::kHalf || received.scalar_type() == at::kBFloat16;
    if (!half && target.scalar_type() == received.scalar_type())
      at::sum_out(target, parts, std::vector<int64_t>{0});
    else
      target.copy_(half ? parts.sum(0, /*keepdim=*/false, at::kFloat) : parts.sum(0));
  };
  return backing->start("reduce_scatter", what, {received, input, output}, std::move(call),
                        std::move(addParts));
}

void Communicator::reduce_scatter(const at::Tensor &output, const at::Tensor &input) {
  reduce_scatter_async(output, input).wait();
}

void Communicator::barrier() { reduce_number(1, Reduction::sum); }

double Communicator::reduce_number(double value, Reduction reduction) {
  if (backing->isAlone())
    return value;
  const auto place = backing->job().nccl ? backing->job().device : at::Device(at::kCPU);
  auto tensor = at::full({1}, value, at::TensorOptions().dtype(at::kDouble).device(place));
  all_reduce(tensor, reduction);
  return tensor.item<double>();
}

std::string Communicator::broadcast_text(const std::string &text, int root) {
  requireRank("broadcast_text", root, size());
  if (backing->isAlone())
    return text;
  auto length = at::full({1}, static_cast<int64_t>(text.size()), at::kLong);
  broadcast(length, root);
  auto bytes = at::empty({length.item<int64_t>()}, at::kByte);
  if (rank() == root)
    std::copy(text.begin(), text.end(), bytes.data_ptr<uint8_t>());
  broadcast(bytes, root);
  return std::string(reinterpret_cast<const char *>(bytes.data_ptr<uint8_t>()), bytes.numel());
}

// A group is used again when all ranks have it to spare. One rank may still hold a communicator that the
// others have let go, so they agree on the first number that all of them have.
std::shared_ptr<Communicator> Communicator::duplicate() {
  auto job = backing->sharedJob();
  constexpr double kNone = std::numeric_limits<double>::infinity();
  for (int from = 0;;) {
    const auto idle = job->idle.lower_bound(from);
    const double own = idle == job->idle.end() ? kNone : idle->first;
    const double least = reduce_number(own, Reduction::minimum),
                 most = reduce_number(own, Reduction::maximum);
    if (most == kNone)
      return std::make_shared<Communicator>(std::make_shared<Backing>(job));
    from = static_cast<int>(most);
    if (least == most)
      return std::make_shared<Communicator>(std::make_shared<Backing>(job, from));
  }
}

} // namespace device_shim
