// A backend by the name of NCCL for virtual devices: Gloo works on the bytes of the tensors. What NCCL
// refuses is refused with its words: tensors of the CPU, and two ranks on one device.
#include "Module.h"
#include "NcclWork.h"
#include "TorchCompat.h"

#include "HostAlias.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <unistd.h>

#include <algorithm>
#include <map>

namespace vcuda::python {
namespace {

namespace py = pybind11;
using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

std::string hostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

// NCCL's types that Gloo lacks, by one of the same size: for works that copy.
at::Tensor copyable(const at::Tensor &host) {
  const bool isBool = host.scalar_type() == at::kBool, isBrain = host.scalar_type() == at::kBFloat16;
  return isBool ? host.view(at::kByte) : isBrain ? host.view(at::kHalf) : host;
}

Tensors copyables(Tensors hosts) {
  for (at::Tensor &host : hosts)
    host = copyable(host);
  return hosts;
}

constexpr std::pair<c10d::ReduceOp::RedOpType, const char *> kBitwise[] = {
    {c10d::ReduceOp::BAND, "BAND"}, {c10d::ReduceOp::BOR, "BOR"}, {c10d::ReduceOp::BXOR, "BXOR"}};

// A reduction as Gloo does it: it has no average, no sum of truth values, and adds no bfloat16 in all
// releases.
struct Reduction {
  explicit Reduction(const Tensors &hosts, const c10d::ReduceOp &given) : operation(given) {
    for (const at::Tensor &host : hosts) {
      isBool |= host.scalar_type() == at::kBool;
      widened |= host.scalar_type() == at::kBFloat16;
      operands.push_back(host.scalar_type() == at::kBFloat16 ? host.to(at::kFloat) : copyable(host));
    }
    average = given.op_ == c10d::ReduceOp::AVG;
    TORCH_CHECK_TYPE(!average || !isBool, "Cannot use ReduceOp.AVG with Boolean inputs");
    for (auto [bitwise, name] : kBitwise)
      VCUDA_CHECK_VALUE(given.op_ != bitwise, "Cannot use ReduceOp.", name, " with NCCL");
    if (average)
      operation = c10d::ReduceOp::SUM;
    if (isBool && given.op_ == c10d::ReduceOp::SUM)
      operation = c10d::ReduceOp::MAX;
  }

  // What is left to do with the reduced operands.
  std::function<void()> finish(const Tensors &hosts, int ranks) const {
    if (!average && !widened)
      return {};
    return [hosts, ranks, from = operands, divided = average] {
      for (size_t i = 0; i < hosts.size(); ++i) {
        if (divided && at::isIntegralType(from[i].scalar_type(), /*includeBool=*/true))
          from[i].div_(ranks, "trunc"); // as NCCL, which divides their sum
        else if (divided)
          from[i].div_(ranks);
        if (from[i].scalar_type() != hosts[i].scalar_type())
          hosts[i].copy_(from[i]);
      }
    };
  }

  c10d::ReduceOp operation;
  Tensors operands;
  bool average = false, isBool = false, widened = false;
};

class Nccl final : public BackendOver {
public:
  Nccl(c10::intrusive_ptr<Backend> gloo, c10::intrusive_ptr<c10d::Store> store)
      : BackendOver(std::move(gloo)), gloo_(*other_), store_(std::move(store)) {}

  const std::string getBackendName() const override { return "nccl"; }

  WorkPtr broadcast(Tensors &tensors, const c10d::BroadcastOptions &options) override {
    Tensors hosts = copyables(enter(tensors));
    return leave(gloo_.broadcast(hosts, options), tensors);
  }

  WorkPtr allreduce(Tensors &tensors, const c10d::AllreduceOptions &options) override {
    Tensors hosts = enter(tensors);
    return reduced(tensors, hosts, options, [this](Tensors &operands, const c10d::AllreduceOptions &summed) {
      return gloo_.allreduce(operands, summed);
    });
  }

  WorkPtr allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &options) override {
    std::vector<WorkPtr> works;
    for (at::Tensor &tensor : tensors) {
      Tensors one{tensor};
      works.push_back(allreduce(one, options));
    }
    return c10::make_intrusive<NcclWork>(std::move(works), tensors);
  }

  WorkPtr reduce(Tensors &tensors, const c10d::ReduceOptions &options) override {
    Tensors hosts = enter(tensors);
    // Gloo uses the tensors of all ranks for what is on the way; NCCL writes those of the root only.
    const bool isRoot = options.rootRank == getRank();
    if (!isRoot)
      for (at::Tensor &host : hosts)
        host = host.clone();
    return reduced(isRoot ? tensors : Tensors{}, hosts, options,
                   [this](Tensors &operands, const c10d::ReduceOptions &summed) {
                     return gloo_.reduce(operands, summed);
                   });
  }

  WorkPtr allgather(TensorLists &outputs, Tensors &inputs, const c10d::AllgatherOptions &options) override {
    if (kGathersAnySizes && haveSeveralSizes(outputs.front()))
      return gatherAnySizes(outputs.front(), inputs.front());
    Tensors hosts = copyables(enter(inputs));
    TensorLists hostOutputs = enter(outputs);
    return leave(gloo_.allgather(hostOutputs, hosts, options), flat(outputs), inputs);
  }

  WorkPtr _allgather_base(at::Tensor &output, at::Tensor &input,
                          const c10d::AllgatherOptions &options) override {
    TensorLists outputs{output.view({getSize(), -1}).unbind(0)};
    Tensors inputs{input.reshape({-1})};
    return allgather(outputs, inputs, options);
  }

  virtual WorkPtr allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                  const c10d::AllgatherOptions &options) VCUDA_SINCE_2 {
    std::vector<WorkPtr> works;
    for (size_t i = 0; i < outputs.size(); ++i)
      works.push_back(_allgather_base(outputs[i], inputs[i], options));
    return c10::make_intrusive<NcclWork>(std::move(works), outputs);
  }

  WorkPtr gather(TensorLists &outputs, Tensors &inputs, const c10d::GatherOptions &options) override {
    Tensors hosts = copyables(enter(inputs));
    TensorLists hostOutputs = enter(outputs);
    return leave(gloo_.gather(hostOutputs, hosts, options), flat(outputs), inputs);
  }

  WorkPtr scatter(Tensors &outputs, TensorLists &inputs, const c10d::ScatterOptions &options) override {
    Tensors hosts = copyables(enter(outputs));
    TensorLists hostInputs = enter(inputs);
    return leave(gloo_.scatter(hosts, hostInputs, options), outputs, flat(inputs));
  }

  // Gloo has no such operation for lists: all is reduced, and each rank takes its part.
  WorkPtr reduce_scatter(Tensors &outputs, TensorLists &inputs,
                         const c10d::ReduceScatterOptions &options) override {
    Tensors parts = inputs.front();
    at::Tensor all = at::cat(flattened(parts));
    std::vector<int64_t> sizes;
    for (const at::Tensor &part : parts)
      sizes.push_back(part.numel());
    return reduceAndTake(all, outputs.front(), all.split_with_sizes(sizes)[static_cast<size_t>(getRank())],
                         options);
  }

  WorkPtr _reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                               const c10d::ReduceScatterOptions &options) override {
    at::Tensor all = input.reshape({getSize(), -1}).clone();
    return reduceAndTake(all, output, all[getRank()], options);
  }

  virtual WorkPtr reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                  const c10d::ReduceScatterOptions &options) VCUDA_SINCE_2 {
    std::vector<WorkPtr> works;
    for (size_t i = 0; i < outputs.size(); ++i)
      works.push_back(_reduce_scatter_base(outputs[i], inputs[i], options));
    return c10::make_intrusive<NcclWork>(std::move(works), outputs);
  }

  WorkPtr alltoall_base(at::Tensor &output, at::Tensor &input, std::vector<int64_t> &outputSizes,
                        std::vector<int64_t> &inputSizes, const c10d::AllToAllOptions &options) override {
    Tensors tensors{output, input};
    Tensors hosts = copyables(enter(tensors));
    return leave(gloo_.alltoall_base(hosts[0], hosts[1], outputSizes, inputSizes, options), tensors);
  }

  WorkPtr alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &options) override {
    std::vector<int64_t> outputSizes, inputSizes;
    for (const at::Tensor &each : outputs)
      outputSizes.push_back(each.numel());
    for (const at::Tensor &each : inputs)
      inputSizes.push_back(each.numel());
    at::Tensor received = at::cat(flattened(outputs)), sent = at::cat(flattened(inputs));
    WorkPtr work = alltoall_base(received, sent, outputSizes, inputSizes, options);
    return noted(c10::make_intrusive<NcclWork>(std::vector<WorkPtr>{work}, outputs, Tensors{sent}, [=] {
      int64_t begin = 0;
      for (const at::Tensor &each : outputs) {
        each.copy_(received.narrow(0, begin, each.numel()).view_as(each));
        begin += each.numel();
      }
    }));
  }

  WorkPtr send(Tensors &tensors, int rank, int tag) override {
    Tensors hosts = copyables(enter(tensors, rank));
    return leave(gloo_.send(hosts, rank, tag), tensors);
  }

  WorkPtr recv(Tensors &tensors, int rank, int tag) override {
    Tensors hosts = copyables(enter(tensors, rank));
    return leave(gloo_.recv(hosts, rank, tag), tensors);
  }

  WorkPtr barrier(const c10d::BarrierOptions &options) override {
    if (!options.device_ids.empty())
      lastDevice_ = c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(options.device_ids.front()));
    const auto count = c10::impl::VirtualGuardImpl(c10::kCUDA).deviceCount();
    checkRanks(lastDevice_.value_or(
        c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(count ? getRank() % count : 0))));
    return leave(gloo_.barrier(c10d::BarrierOptions()), {});
  }

private:
  // As NCCL's backend does it: each rank tells its own.
  WorkPtr gatherAnySizes(Tensors &outputs, const at::Tensor &input) {
    std::vector<WorkPtr> works;
    outputs[static_cast<size_t>(getRank())].copy_(input);
    for (size_t rank = 0; rank < outputs.size(); ++rank) {
      c10d::BroadcastOptions from;
      from.rootRank = static_cast<int64_t>(rank);
      Tensors one{outputs[rank]};
      works.push_back(broadcast(one, from));
    }
    return c10::make_intrusive<NcclWork>(std::move(works), outputs);
  }

  static bool haveSeveralSizes(const Tensors &tensors) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const at::Tensor &each) { return each.sizes() != tensors.front().sizes(); });
  }

  // The bytes of device tensors. `peer`: the only other rank that takes part, or -1 for all.
  Tensors enter(const Tensors &tensors, int peer = -1) {
    Tensors hosts;
    for (const at::Tensor &tensor : tensors) {
      VCUDA_CHECK_VALUE(tensor.is_cuda() && !tensor.is_sparse(), "Tensors must be CUDA and dense");
      VCUDA_CHECK_VALUE(tensor.is_non_overlapping_and_dense(), "Tensors must be contiguous");
      hosts.push_back(hostAlias(tensor));
      lastDevice_ = tensor.device();
    }
    if (lastDevice_ && !tensors.empty())
      checkRanks(*lastDevice_, peer);
    return hosts;
  }

  TensorLists enter(const TensorLists &lists) {
    TensorLists hosts;
    for (const Tensors &list : lists)
      hosts.push_back(copyables(enter(list)));
    return hosts;
  }

  // The bytes of `inputs` are read until the work is done.
  WorkPtr leave(const WorkPtr &work, const Tensors &outputs, const Tensors &inputs = {}) {
    return noted(c10::make_intrusive<NcclWork>(std::vector<WorkPtr>{work}, outputs, inputs));
  }

  template <typename Options, typename Start>
  WorkPtr reduced(const Tensors &outputs, const Tensors &hosts, Options options, Start start) {
    Reduction reduction(hosts, options.reduceOp);
    options.reduceOp = reduction.operation;
    WorkPtr work = start(reduction.operands, options);
    return noted(c10::make_intrusive<NcclWork>(std::vector<WorkPtr>{work}, outputs, reduction.operands,
                                               reduction.finish(hosts, getSize())));
  }

  WorkPtr reduceAndTake(const at::Tensor &all, const at::Tensor &output, const at::Tensor &part,
                        const c10d::ReduceScatterOptions &options) {
    Tensors tensors{all};
    c10d::AllreduceOptions reduction;
    reduction.reduceOp = options.reduceOp;
    reduction.timeout = options.timeout;
    enter({output});
    const bool coalescing = std::exchange(coalescing_, false);
    WorkPtr work = allreduce(tensors, reduction);
    coalescing_ = coalescing;
    return noted(c10::make_intrusive<NcclWork>(std::vector<WorkPtr>{work}, Tensors{output}, Tensors{all},
                                               [=] { output.copy_(part.view_as(output)); }));
  }

  WorkPtr noted(WorkPtr work) {
    if (coalescing_)
      coalesced_.push_back(work);
    return work;
  }

  static Tensors flat(const TensorLists &lists) {
    Tensors all;
    for (const Tensors &list : lists)
      all.insert(all.end(), list.begin(), list.end());
    return all;
  }

  static Tensors flattened(const Tensors &tensors) {
    Tensors all;
    for (const at::Tensor &tensor : tensors)
      all.push_back(tensor.reshape({-1}));
    return all;
  }

  // NCCL makes a communicator when a device is used first, and refuses two ranks on one device.
  void checkRanks(c10::Device device, int peer = -1) {
    const int from = peer < 0 ? 0 : peer, to = peer < 0 ? getSize() : peer + 1;
    const std::string own = hostName() + " " + device.str();
    if (!checked_[peer].insert(own).second)
      return;
    const std::string prefix = "virtual_nccl/" + std::string(peer < 0 ? "all/" : "pair/");
    auto key = [&](int rank, int other) {
      return prefix + std::to_string(rank) + (peer < 0 ? "" : "/" + std::to_string(other)) + "/" +
             std::to_string(checked_[peer].size());
    };
    store_->set(key(getRank(), peer), std::vector<uint8_t>(own.begin(), own.end()));
    for (int rank = from; rank < to; ++rank) {
      if (rank == getRank())
        continue;
      const std::vector<uint8_t> told = store_->get(key(rank, getRank()));
      if (std::string(told.begin(), told.end()) == own)
        refuseDuplicate(std::max(rank, getRank()), std::min(rank, getRank()), device);
    }
  }

  [[noreturn]] static void refuseDuplicate(int first, int second, c10::Device device) {
    throw DistributedError(
        {__func__, __FILE__, __LINE__},
        c10::str("NCCL error: invalid usage (run with NCCL_DEBUG=WARN for details), virtual NCCL\n"
                 "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\n"
                 "Last error:\nDuplicate GPU detected : rank ",
                 first, " and rank ", second, " both on CUDA device ", static_cast<int>(device.index()), " (",
                 device, "); call torch.cuda.set_device(LOCAL_RANK) before the first collective"));
  }

  void startTogether() override { coalescing_ = true; }
  WorkPtr endTogether() override {
    coalescing_ = false;
    return c10::make_intrusive<NcclWork>(std::exchange(coalesced_, {}));
  }

  Backend &gloo_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::optional<c10::Device> lastDevice_;
  std::map<int, std::set<std::string>> checked_;
  bool coalescing_ = false;
  std::vector<WorkPtr> coalesced_;
};

} // namespace

void addProcessGroup(py::module_ &module) {
  py::class_<Nccl, Backend, c10::intrusive_ptr<Nccl>>(module, "ProcessGroupNCCL", py::dynamic_attr())
      .def(py::init<c10::intrusive_ptr<Backend>, c10::intrusive_ptr<c10d::Store>>());
}

} // namespace vcuda::python
