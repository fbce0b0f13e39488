#include "ddp/GradientBuckets.h"

#include "autograd/BackwardPass.h"
#include "autograd/DenseGradient.h"
#include "autograd/UnlinkedGradient.h"
#include "base/Compat.h"
#include "params/ModelAgreement.h"

#include <device_shim/Error.h>

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

namespace device_shim::detail {
namespace {

const char *const kWrapper = "DistributedDataParallel";

// Autograd keeps gradients in the layout of their parameters where that is dense. The result shares memory,
// but is no view to autograd: Optimizer::zero_grad() of LibTorch 1.13 detaches gradients in place, which
// views refuse.
at::Tensor viewLike(const at::Tensor &flat, int64_t offset, const at::Tensor &parameter) {
  at::AutoDispatchBelowADInplaceOrView withoutTracking;
  if (parameter.is_non_overlapping_and_dense())
    return flat.as_strided(parameter.sizes(), parameter.strides(), offset);
  return flat.narrow(0, offset, parameter.numel()).view(parameter.sizes());
}

std::string agreementText(const DataParallelOptions &options) {
  return "bucket_bytes " + std::to_string(options.bucket_bytes) + "\nfirst_bucket_bytes " +
         std::to_string(options.first_bucket_bytes) + "\nfind_unused_parameters " +
         (options.find_unused_parameters ? "true" : "false") + "\nbroadcast_buffers " +
         (options.broadcast_buffers ? "true" : "false") + "\n";
}

void checkOptions(const DataParallelOptions &options) {
  if (options.bucket_bytes < 1 || options.first_bucket_bytes < 1)
    throw UsageError("DataParallelOptions::bucket_bytes and first_bucket_bytes must be at least 1, not " +
                     std::to_string(options.bucket_bytes) + " and " +
                     std::to_string(options.first_bucket_bytes));
}

std::string kindOf(const at::Tensor &tensor) {
  std::ostringstream text;
  text << c10::toString(tensor.scalar_type()) << " " << tensor.sizes() << " on " << tensor.device();
  return text.str();
}

// `part` is the parameter's part of its bucket, of the kind that the parameter had.
void requireSameKind(const at::Tensor &parameter, const at::Tensor &part, const std::string &name) {
  if (parameter.scalar_type() != part.scalar_type() || parameter.device() != part.device() ||
      parameter.sizes() != part.sizes())
    throw UsageError("parameter " + name + " is " + kindOf(parameter) + " now, but was " + kindOf(part) +
                     " when " + kWrapper +
                     " was made; call Module::to() before making the wrapper, give torch::load() the device "
                     "of the rank, and load files of the same model only");
}

// Of a graph whose wrapper is gone. A pass for certain tensors, as that of torch::autograd::grad(), leaves no
// gradients in parameters.
void refuseBackward(const std::vector<at::Tensor> &parameters) {
  const auto *wanted = torch::autograd::get_current_graph_task_exec_info();
  if (wanted && !wanted->empty())
    return;
  if (std::any_of(parameters.begin(), parameters.end(),
                  [](const auto &each) { return each.requires_grad(); }))
    throw UsageError(std::string("the ") + kWrapper +
                     " whose forward() made this graph was destroyed before backward(), so that the ranks "
                     "would not average the gradients; keep it for as long as its results");
}

} // namespace

GradientBuckets::GradientBuckets(torch::nn::Module &ofModule, std::shared_ptr<Communicator> all,
                                 const DataParallelOptions &wanted)
    : module(ofModule), ranks(std::move(all)), options(wanted), claim(ofModule, Wrapper::dataParallel),
      known(ofModule) {
  if (!ranks)
    throw UsageError("DistributedDataParallel got no communicator; pass what init_distributed() returned");
  checkOptions(options);
  requireOnDevice(module, *ranks, kWrapper);
  requireSameModel(module, agreementText(options), *ranks);
  broadcastModel(module, *ranks);
  // Two models may fill their buckets in another order on each rank. NCCL has no use for it: its operations
  // want one order over all communicators, and each takes memory of the device.
  if (ranks->backend() == "gloo")
    ranks = ranks->duplicate();
  assign();
  addHooks();
  std::vector<at::Tensor> parameters;
  if (ranks->size() > 1)
    for (const auto &slot : slots)
      parameters.push_back(slot.parameter);
  trained = std::make_shared<const std::vector<at::Tensor>>(std::move(parameters));
}

GradientBuckets::~GradientBuckets() {
  tether.cut();
  waitForSums(); // the gradients of the parameters outlive the buckets
  for (auto &slot : slots)
    slot.hook.reset();
}

// Backward makes gradients roughly from the last parameter to the first; a tied parameter has its when
// autograd comes to its first use. A bucket has one device and one type.
void GradientBuckets::assign() {
  using Kind = std::pair<std::string, at::ScalarType>;
  std::map<Kind, std::pair<size_t, int64_t>> open; // bucket and the bytes in it
  const auto distinct = distinctParameters(module);
  for (auto entry = distinct.rbegin(); entry != distinct.rend(); ++entry) {
    const auto &parameter = entry->value;
    if (!parameter.requires_grad()) {
      frozen.push_back(*entry);
      continue;
    }
    if (parameter.layout() != at::kStrided)
      throw UsageError("parameter " + entry->name +
                       " is sparse; DistributedDataParallel averages dense "
                       "parameters only");
    const Kind kind{parameter.device().str(), parameter.scalar_type()};
    const int64_t bytes = parameter.numel() * static_cast<int64_t>(parameter.element_size());
    auto found = open.find(kind);
    if (found == open.end()) {
      buckets.emplace_back();
      found = open.emplace(kind, std::make_pair(buckets.size() - 1, int64_t(0))).first;
    }
    Slot slot;
    slot.name = entry->name;
    slot.parameter = parameter;
    slot.bucket = found->second.first;
    found->second.second += bytes;
    if (found->second.second >= (slot.bucket == 0 ? options.first_bucket_bytes : options.bucket_bytes))
      open.erase(found);
    buckets[slot.bucket].slots.push_back(slots.size());
    slots.push_back(std::move(slot));
  }
  if (slots.empty())
    throw UsageError(
        "the model has no parameter that requires a gradient; DistributedDataParallel has nothing to do");
  for (auto &bucket : buckets) {
    allocate(bucket);
    bucket.missing = bucket.slots.size();
  }
}

void GradientBuckets::allocate(Bucket &bucket) {
  at::NoGradGuard noGrad;
  int64_t total = 0;
  for (const auto index : bucket.slots)
    total += slots[index].parameter.numel();
  const int64_t flags = options.find_unused_parameters ? static_cast<int64_t>(bucket.slots.size()) : 0;
  bucket.flat =
      at::zeros({total + flags}, slots[bucket.slots.front()].parameter.options().requires_grad(false));
  bucket.sent = bucket.flat.is_complex() ? at::view_as_real(bucket.flat) : bucket.flat;
  int64_t offset = 0;
  for (const auto index : bucket.slots) {
    auto &slot = slots[index];
    slot.offset = offset;
    slot.view = viewLike(bucket.flat, offset, slot.parameter);
    offset += slot.parameter.numel();
  }
}

void GradientBuckets::addHooks() {
  for (size_t i = 0; i < slots.size(); ++i)
    slots[i].hook = std::make_unique<GradientHook>(slots[i].parameter, slots[i].name, kWrapper,
                                                   [this, i] { gradientReady(i); });
}

// Parameters that torch::load() has filled since, say. The buckets stay what they are.
void GradientBuckets::followReplaced() {
  for (auto &slot : slots) {
    requireSameKind(slot.parameter, slot.view, slot.name);
    if (slot.hook->lost())
      slot.hook->renew();
  }
}

void GradientBuckets::compareModule() {
  known.requireNoneAdded(module, kWrapper);
  comparedModule = true;
}

void GradientBuckets::beforeForward() {
  requireStillFrozen(frozen, kWrapper);
  {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    if (passActive) // an exception ended the last backward pass, and a thread of autograd still holds it
      abandon();
    dropSpoilt();
    if (at::GradMode::is_enabled()) {
      followReplaced();
      compareModule();
    }
  }
  if (pauses > 0 || !options.broadcast_buffers || !at::GradMode::is_enabled())
    return;
  // Without telling autograd, where another forward pass waits for its backward pass. What that needs is not
  // changed: a buffer that differs between the ranks was changed by a forward pass, which autograd knows.
  std::vector<at::Tensor> buffers;
  for (const auto &buffer : module.buffers())
    buffers.push_back(buffer.variable_data());
  if (!buffers.empty())
    ranks->broadcast(buffers);
}

// A backward pass within another, as that of a segment that is computed again, ends before it. The outer one
// is the one that comes through the results of the model.
void GradientBuckets::afterForward(const std::vector<at::Tensor *> &outputs) {
  bool learns = false;
  for (const auto *output : outputs)
    if (output->defined() && output->requires_grad() && !output->is_leaf()) {
      learns = true;
      output->register_hook([tether = tether, trained = trained](const at::Tensor &) {
        if (!tether.reach([](GradientBuckets &buckets) { buckets.passReachesOutputs(); }))
          refuseBackward(*trained);
      });
    }
  forwardPasses += learns;
}

void GradientBuckets::passReachesOutputs() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  const void *task = torch::autograd::get_current_graph_task_exec_info();
  if (outputsPass != 0 && task == outputsTask)
    return;
  outputsTask = task;
  outputsPass = ++passes;
  BackwardPass<GradientBuckets>::follow(tether, outputsPass);
}

// Whether the pass of autograd that is at work here is within another one of this model.
bool GradientBuckets::isNested() const {
  return outputsPass != 0 && torch::autograd::get_current_graph_task_exec_info() != outputsTask;
}

void GradientBuckets::gradientReady(size_t index) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  auto &slot = slots[index];
  buckets[slot.bucket].spoilt = false;
  if (pauses > 0) {
    forwardPasses = 0;
    slot.accumulated = true;
    return;
  }
  if (!passActive) {
    passActive = true;
    activePass = ++passes;
    BackwardPass<GradientBuckets>::follow(tether, activePass);
  }
  waiting = waiting || (forwardPasses > 1 && !options.find_unused_parameters && isNested());
  if (slot.ready && (!waiting || slot.bucket < nextBucket))
    throw UsageError("parameter " + slot.name +
                     " got its gradient twice in one backward pass, as with nested "
                     "backward passes; call backward() once, inside no_sync() for all but the last");
  if (!std::exchange(slot.ready, true))
    --buckets[slot.bucket].missing;
  place(slot);
  launchReady();
}

// Makes the gradient the bucket's part.
void GradientBuckets::place(Slot &slot) {
  at::NoGradGuard noGrad;
  auto &gradient = slot.parameter.mutable_grad();
  requireDenseGradient(gradient, slot.name, kWrapper);
  const auto &flat = buckets[slot.bucket].flat;
  if (!slot.view.is_alias_of(flat)) // after set_data() of the gradient
    slot.view = viewLike(flat, slot.offset, slot.parameter);
  if (isPart(gradient, slot.view))
    return;
  spareKept(slot);
  if (gradient.defined())
    slot.view.copy_(gradient.detach());
  else
    slot.view.zero_();
  // An unused parameter keeps its undefined gradient, see settleUnused().
  if (!slot.unused)
    gradient = gradient.defined() && gradient.requires_grad()
                   ? unlinkedGradient(slot.view, slot.name, kWrapper)
                   : slot.view;
}

// Buckets are sent in the same order on every rank, for any order of the gradients.
void GradientBuckets::launchReady() {
  while (!waiting && nextBucket < buckets.size() && buckets[nextBucket].missing == 0)
    launch(buckets[nextBucket++]);
}

// One flag per parameter, whether this rank used it; the host waits for none.
void GradientBuckets::setFlags(Bucket &bucket) {
  auto flags = flagsOf(bucket);
  flags.fill_(1);
  for (size_t i = 0; i < bucket.slots.size(); ++i)
    if (slots[bucket.slots[i]].unused)
      flags[static_cast<int64_t>(i)].zero_();
}

at::Tensor GradientBuckets::flagsOf(const Bucket &bucket) const {
  const auto count = static_cast<int64_t>(bucket.slots.size());
  return bucket.flat.narrow(0, bucket.flat.numel() - count, count);
}

void GradientBuckets::launch(Bucket &bucket) {
  at::NoGradGuard noGrad;
  if (options.find_unused_parameters)
    setFlags(bucket);
  bucket.flat.div_(ranks->size());
  bucket.sum = ranks->all_reduce_async(bucket.sent);
}

// Runs at the end of the backward pass, on the thread that called backward(); for a pass that is followed
// from the results of the model on, twice.
void GradientBuckets::passEnds() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (!passActive)
    return;
  const bool complete =
      std::all_of(buckets.begin(), buckets.end(), [](const auto &bucket) { return bucket.missing == 0; });
  if ((waiting || !complete) && !options.find_unused_parameters && isNested()) {
    activePass = outputsPass;
    return;
  }
  waiting = false;
  try {
    if (!comparedModule) // the module's own forward() was called
      compareModule();
    fillMissing();
    for (auto &bucket : buckets)
      bucket.sum.wait();
    if (options.find_unused_parameters)
      settleUnused();
  } catch (...) {
    abandon();
    throw;
  }
  for (auto &slot : slots)
    slot.accumulated = false;
  comparedModule = false;
  forwardPasses = 0;
  reset();
}

void GradientBuckets::fillMissing() {
  std::string names;
  size_t unused = 0, frozenSince = 0;
  for (auto &slot : slots) {
    if (slot.ready)
      continue;
    const bool holds = slot.parameter.grad().defined();
    slot.accumulated = slot.accumulated && holds; // or it was dropped meanwhile
    slot.unused = !holds;
    if (slot.accumulated || options.find_unused_parameters)
      continue;
    frozenSince += !slot.parameter.requires_grad();
    if (++unused <= 8)
      names += (names.empty() ? "" : ", ") + slot.name;
  }
  if (unused > 0)
    throw UsageError("rank " + std::to_string(ranks->rank()) + ": " + std::to_string(unused) +
                     " parameters got no gradient in this backward pass (" + names +
                     (unused > 8 ? ", ..." : "") + "); " +
                     (frozenSince > 0 ? std::to_string(frozenSince) + " were frozen after " + kWrapper +
                                            " was made: make it again after freezing parameters"
                                      : "use all outputs of the model in the loss, freeze these parameters "
                                        "before making the wrapper") +
                     ", or set DataParallelOptions::find_unused_parameters");
  for (auto &slot : slots) {
    if (slot.ready)
      continue;
    place(slot);
    --buckets[slot.bucket].missing;
  }
  launchReady();
}

// What no rank used keeps its undefined gradient, so that optimizers skip it; what another rank used has one
// here. The host waits for the flags of all buckets of a device and type together.
void GradientBuckets::settleUnused() {
  using Kind = std::pair<std::string, at::ScalarType>;
  std::map<Kind, std::pair<std::vector<size_t>, std::vector<at::Tensor>>> asked; // slots and their flags
  for (const auto &bucket : buckets)
    for (size_t i = 0; i < bucket.slots.size(); ++i)
      if (slots[bucket.slots[i]].unused) {
        auto &[indices, flags] = asked[{bucket.flat.device().str(), bucket.flat.scalar_type()}];
        indices.push_back(bucket.slots[i]);
        flags.push_back(flagsOf(bucket).narrow(0, static_cast<int64_t>(i), 1));
      }
  for (const auto &entry : asked) {
    const auto &[indices, flags] = entry.second;
    const auto joined = at::cat(flags);
    const auto used = (joined.is_complex() ? at::real(joined) : joined).to(at::kCPU, at::kFloat);
    for (size_t i = 0; i < indices.size(); ++i)
      if (used[static_cast<int64_t>(i)].item<float>() > 0)
        slots[indices[i]].parameter.mutable_grad() = slots[indices[i]].view;
  }
}

// Of a pass that an exception ended. Where the exception is this rank's alone, the others fail; where all
// ranks catch it, they may go on.
void GradientBuckets::passFailed(uint64_t pass) noexcept {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (pass == outputsPass)
    outputsPass = 0;
  if (passActive && pass == activePass)
    abandon();
}

// Returns when nothing writes into the buckets any more. On which thread autograd comes here is open, so that
// it does not suffice that a stream waits.
void GradientBuckets::abandon() noexcept {
  std::set<std::string> devices;
  for (auto &bucket : buckets)
    bucket.spoilt = bucket.spoilt || bucket.sum.valid();
  reset();
  try {
    for (const auto &bucket : buckets)
      if (bucket.spoilt && bucket.flat.is_cuda() && devices.insert(bucket.flat.device().str()).second)
        compat::synchronize(compat::currentStream(bucket.flat.device()));
  } catch (const std::exception &) {
    // What failed on the device is said by the next operation there.
  }
}

// zero_grad() may have come before the sum of another rank's gradients.
void GradientBuckets::dropSpoilt() {
  for (auto &bucket : buckets) {
    if (bucket.spoilt)
      for (const auto index : bucket.slots)
        slots[index].parameter.mutable_grad() = at::Tensor();
    bucket.spoilt = false;
  }
}

// The sums that are under way go on writing into the gradients of the parameters: these must not be used
// before. That a rank has died is said by the next operation.
void GradientBuckets::waitForSums() noexcept {
  bool failed = false;
  for (auto &bucket : buckets) {
    try {
      if (!failed)
        bucket.sum.wait();
    } catch (const std::exception &) {
      failed = true; // and so would the others
    }
    bucket.sum = {};
  }
}

void GradientBuckets::reset() {
  for (auto &slot : slots)
    slot.ready = slot.unused = false;
  waitForSums();
  for (auto &bucket : buckets) {
    bucket.missing = bucket.slots.size();
    bucket.checked = false;
  }
  nextBucket = 0;
  passActive = waiting = false;
}

} // namespace device_shim::detail

namespace device_shim {

DataParallelCore::DataParallelCore(torch::nn::Module &module, std::shared_ptr<Communicator> ranks,
                                   const DataParallelOptions &options)
    : buckets(std::make_unique<detail::GradientBuckets>(module, std::move(ranks), options)) {}
DataParallelCore::~DataParallelCore() = default;
DataParallelCore::DataParallelCore(DataParallelCore &&) noexcept = default;

void DataParallelCore::before_forward() { buckets->beforeForward(); }
void DataParallelCore::after_forward(const std::vector<at::Tensor *> &outputs) {
  buckets->afterForward(outputs);
}
size_t DataParallelCore::bucket_count() const { return buckets->count(); }

DataParallelCore::NoSync::NoSync(detail::GradientBuckets &ofBuckets) : buckets(&ofBuckets) {
  buckets->pauseAveraging();
}
DataParallelCore::NoSync::~NoSync() {
  if (buckets)
    buckets->resumeAveraging();
}

} // namespace device_shim
