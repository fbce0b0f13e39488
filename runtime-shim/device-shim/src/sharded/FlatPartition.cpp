#include "sharded/FlatPartition.h"

#include "autograd/DenseGradient.h"
#include "base/Compat.h"
#include "base/NormalTensors.h"

#include <device_shim/Error.h>

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <utility>

namespace device_shim::detail {
namespace {

bool isHalf(at::ScalarType type) { return type == at::kHalf || type == at::kBFloat16; }

int64_t bytesOf(const at::Tensor &tensor) {
  return tensor.numel() * static_cast<int64_t>(tensor.element_size());
}

c10::StorageImpl &storageOf(const at::Tensor &tensor) { return *tensor.storage().unsafeGetStorageImpl(); }

} // namespace

FlatPartition::FlatPartition(std::vector<Member> members, const Placement &wanted,
                             const std::shared_ptr<Communicator> &ranks, MemoryCount &count)
    : parts(std::move(members)), placement(wanted), memory(count), rank(ranks->rank()),
      rankCount(ranks->size()) {
  NormalTensors normal;
  int64_t total = 0;
  for (auto &part : parts) {
    part.offset = total;
    total += part.elements;
  }
  needsGradient = parts.front().parameter.requires_grad();
  ownSize = (total + rankCount - 1) / rankCount;
  const auto original = parts.front().parameter.scalar_type();
  masterType = isHalf(original) ? at::kFloat : original;
  const auto all = joined();
  const auto own = all.narrow(0, rank * ownSize, ownSize);

  const auto computeOptions = at::TensorOptions().device(placement.compute).dtype(placement.type);
  if (placement.keepWhole)
    whole = all.to(computeOptions);
  else
    whole = at::empty({paddedSize()}, computeOptions);
  for (auto &part : parts)
    part.view = whole.narrow(0, part.offset, part.elements).view(part.sizes);
  hasWhole = true;
  memory.add(wholeBytes());
  if (placement.keepWhole) {
    resting = whole.narrow(0, rank * ownSize, ownSize);
  } else {
    resting = own.to(computeOptions.device(placement.resting)).clone();
    if (placement.resting.is_cpu())
      resting = onHost(resting);
    memory.add(bytesOf(resting));
  }
  if (needsGradient) {
    const bool shared = placement.type == masterType && placement.optimizer == resting.device();
    ownMaster = shared ? resting.detach() : own.to(placement.optimizer, masterType).clone();
    if (!shared && placement.optimizer.is_cpu())
      ownMaster = onHost(ownMaster);
    if (!shared)
      memory.add(bytesOf(ownMaster));
    ownMaster.set_requires_grad(true);
    knownMaster.emplace(ownMaster, ranks);
    for (const auto &part : parts)
      marks.push_back(std::make_unique<GradientMark>(part.parameter, part.name));
    seenVersion = ownMaster._version();
    sum.emplace(sumLayout(), memory);
  }
  pointMembers(/*atWhole=*/true);
  release();
  noteVersions();
}

FlatPartition::~FlatPartition() {
  if (needsGradient)
    ownMaster.mutable_grad() = gradientOfNothing();
}

// The members as a vector, made where they are now, which may be a host whose device could not hold the
// model.
at::Tensor FlatPartition::joined() const {
  auto all =
      at::zeros({paddedSize()}, parts.front().parameter.options().requires_grad(false).dtype(masterType));
  for (const auto &part : parts)
    all.narrow(0, part.offset, part.elements).view(part.sizes).copy_(part.parameter.detach());
  return all;
}

GradientSum::Layout FlatPartition::sumLayout() const {
  GradientSum::Layout layout;
  layout.partSize = ownSize;
  layout.rankCount = rankCount;
  const auto messageSize = placement.messageBytes / static_cast<int64_t>(whole.element_size());
  layout.pieceSize = std::max<int64_t>(messageSize / rankCount, 1);
  layout.options = whole.options();
  layout.sumType = masterType;
  return layout;
}

at::Tensor FlatPartition::onHost(const at::Tensor &tensor) const {
  return placement.pinned ? tensor.cpu().pin_memory() : tensor.cpu();
}

int64_t FlatPartition::wholeBytes() const {
  return paddedSize() * static_cast<int64_t>(whole.element_size());
}

// The tensors that autograd saved are views of the same storage, so its memory is exchanged under them.
void FlatPartition::allocateWhole() {
  c10::DeviceGuard guard(placement.compute);
  auto &storage = storageOf(whole);
  const auto bytes = static_cast<size_t>(wholeBytes());
  storage.set_data_ptr_noswap(storage.allocator()->allocate(bytes));
  storage.set_nbytes(bytes);
  memory.add(wholeBytes());
}

void FlatPartition::release() {
  if (placement.keepWhole || !hasWhole)
    return;
  if (gathering.valid())
    finishGather();
  pointMembers(/*atWhole=*/false);
  auto &storage = storageOf(whole);
  storage.set_data_ptr_noswap(at::DataPtr(nullptr, placement.compute));
  storage.set_nbytes(0);
  memory.add(-wholeBytes());
  hasWhole = false;
}

// Parameters without memory are empty, so that using one outside its stage is an error about shapes and no
// crash.
void FlatPartition::pointMembers(bool atWhole) {
  NormalTensors normal;
  at::Tensor nothing;
  if (!atWhole)
    nothing = at::empty({0}, whole.options());
  for (auto &part : parts)
    part.parameter.set_data(atWhole ? part.view : nothing);
}

void FlatPartition::noteVersions() {
  for (auto &part : parts)
    part.version = part.parameter._version();
}

const FlatPartition::Member *FlatPartition::replaced() const {
  const bool atWhole = hasWhole && !gatherInput.defined();
  const auto touched = [&](const Member &part) {
    return atWhole ? part.parameter.data_ptr() != part.view.data_ptr() || part.parameter.sizes() != part.sizes
                   : part.parameter.numel() != 0;
  };
  const auto found = std::find_if(parts.begin(), parts.end(), touched);
  return found == parts.end() ? nullptr : &*found;
}

// Where the parameters are kept whole and the optimizer works in the same memory, or none does, nothing is
// lost.
const FlatPartition::Member *FlatPartition::overwrittenMember() const {
  if (placement.keepWhole && (!needsGradient || ownMaster.data_ptr() == resting.data_ptr()))
    return nullptr;
  const auto changed = [](const Member &part) { return part.parameter._version() != part.version; };
  const auto found = std::find_if(parts.begin(), parts.end(), changed);
  return found == parts.end() ? nullptr : &*found;
}

const FlatPartition::Member *FlatPartition::sharesMemory(const at::Tensor &tensor) const {
  if (!tensor.defined() || !tensor.has_storage() || !tensor.is_alias_of(whole))
    return nullptr;
  const auto begins = [&](const Member &part) { return part.offset <= tensor.storage_offset(); };
  return &*std::find_if(parts.rbegin(), parts.rend(), begins);
}

void FlatPartition::startGather(Communicator &ranks) {
  if (hasWhole)
    return;
  NormalTensors normal;
  allocateWhole();
  hasWhole = true;
  gatherInput = resting.device() == placement.compute
                    ? resting
                    : resting.to(placement.compute, resting.scalar_type(), /*non_blocking=*/placement.pinned);
  gathering = ranks.all_gather_async(whole, gatherInput);
  if (!gathering.valid())
    finishGather();
}

void FlatPartition::finishGather() {
  if (!gatherInput.defined())
    return;
  gathering.wait();
  gathering = {};
  gatherInput = at::Tensor();
  pointMembers(/*atWhole=*/true);
}

size_t FlatPartition::followFreezing() {
  if (!needsGradient)
    return 0;
  const auto frozen = [](const Member &member) { return !member.parameter.requires_grad(); };
  const auto first = std::find_if(parts.begin(), parts.end(), frozen);
  const auto learning = std::find_if_not(parts.begin(), parts.end(), frozen);
  if (first != parts.end() && learning != parts.end())
    throw UsageError(
        "parameter " + first->name + " was frozen after ShardedDataParallel was made, but " + learning->name +
        " was not: the optimizer would go on changing both, because they are in one partition. Freeze "
        "it before, or keep them apart with ShardedOptions::group");
  frozenNow = learning == parts.end();
  return frozenNow ? 0 : parts.size();
}

void FlatPartition::requireLearning(size_t member) const {
  if (frozenNow)
    throw UsageError(
        "parameter " + parts[member].name +
        " was frozen in the last forward pass, but gets a gradient from one before; call backward() "
        "before freezing it");
}

void FlatPartition::takeGradient(size_t index) {
  NormalTensors normal;
  auto &part = parts[index];
  auto &from = part.parameter.mutable_grad();
  requireDenseGradient(from, part.name, "ShardedDataParallel");
  if (!from.defined())
    return;
  gradientsLinked = from.requires_grad();
  sum->take(part.offset, from);
  from = at::Tensor();
}

void FlatPartition::startReduce(Communicator &ranks) {
  if (!needsGradient || frozenNow)
    return;
  NormalTensors normal;
  const bool here = placement.compute == placement.optimizer;
  sum->start(ranks, here ? ownMaster.grad() : at::Tensor());
}

void FlatPartition::finishReduce() {
  if (!sum)
    return;
  NormalTensors normal;
  const auto part = sum->finish();
  if (!part.defined())
    return;
  finishArrival();
  if (part.device() == placement.optimizer) {
    ownMaster.mutable_grad() = part;
    countGradient();
    return;
  }
  // The host goes on meanwhile.
  arriving = at::empty({ownSize}, part.options().device(placement.optimizer).pinned_memory(placement.pinned));
  memory.add(bytesOf(arriving));
  arriving.copy_(part, /*non_blocking=*/placement.pinned);
  if (placement.pinned)
    copying = compat::currentStream(part.device());
}

// Where the optimizer and other operations of the host may read it.
void FlatPartition::finishArrival() {
  if (!arriving.defined())
    return;
  if (copying)
    compat::synchronize(*copying);
  copying.reset();
  memory.add(-bytesOf(arriving));
  addToMaster(std::exchange(arriving, at::Tensor()));
}

void FlatPartition::addToMaster(const at::Tensor &part) {
  NormalTensors normal;
  countGradient();
  auto &total = ownMaster.mutable_grad();
  if (total.defined())
    total.add_(part);
  else
    total = part;
  countGradient();
}

void FlatPartition::placeMarks() {
  if (needsGradient && ownMaster.grad().defined())
    for (auto &mark : marks)
      mark->place(gradientsLinked);
}

const FlatPartition::Member *FlatPartition::takeMarks() {
  const Member *changed = nullptr;
  std::vector<const Member *> cleared;
  size_t dropped = 0;
  for (size_t i = 0; i < marks.size(); ++i) {
    const auto found = marks[i]->take();
    if (found == GradientMark::Found::zeroed || found == GradientMark::Found::dropped)
      cleared.push_back(&parts[i]);
    dropped += found == GradientMark::Found::dropped ? 1 : 0;
    if (found == GradientMark::Found::changed)
      changed = &parts[i];
  }
  if (cleared.empty() || !ownMaster.grad().defined())
    return changed;
  if (dropped == parts.size())
    ownMaster.mutable_grad() = at::Tensor();
  else
    for (const auto *member : cleared)
      clearGradient(*member);
  countGradient();
  return changed;
}

// What of the member is in this rank's part.
void FlatPartition::clearGradient(const Member &member) {
  NormalTensors normal;
  const auto first = std::max<int64_t>(member.offset - rank * ownSize, 0);
  const auto end = std::min(member.offset + member.elements - rank * ownSize, ownSize);
  if (first < end)
    ownMaster.mutable_grad().narrow(0, first, end - first).zero_();
}

// Copies go on using the tensors until they are over.
void FlatPartition::abandonGradient() noexcept {
  if (sum)
    sum->abandon();
  try {
    if (copying)
      compat::synchronize(*copying);
  } catch (const std::exception &) {
  }
  copying.reset();
  if (arriving.defined())
    memory.add(-bytesOf(arriving));
  arriving = at::Tensor();
}

void FlatPartition::countGradient() {
  const bool defined = needsGradient && ownMaster.grad().defined();
  const int64_t bytes = defined ? bytesOf(ownMaster.grad()) : 0;
  memory.add(bytes - countedGradient);
  countedGradient = bytes;
}

void FlatPartition::synchronize(Communicator &ranks, bool stepsTaken) {
  const bool stepped = needsGradient && (stepsTaken || seenVersion != ownMaster._version());
  if (!stepped && !overwritten)
    return;
  NormalTensors normal;
  release();
  if (needsGradient && ownMaster.data_ptr() != resting.data_ptr())
    resting.copy_(ownMaster.detach());
  if (placement.keepWhole)
    ranks.all_gather(whole, resting);
  if (needsGradient)
    seenVersion = ownMaster._version();
  overwritten = false;
}

bool FlatPartition::follow(Communicator &ranks) {
  NormalTensors normal;
  const auto before = needsGradient ? whole.clone() : at::Tensor();
  synchronize(ranks, /*stepsTaken=*/true);
  // As bytes: a NaN is not equal to itself.
  return !needsGradient || at::equal(before.view(at::kByte), whole.view(at::kByte));
}

at::Tensor FlatPartition::assemble(const at::Tensor &part, Communicator &ranks) const {
  NormalTensors normal;
  auto own = part.detach().to(placement.compute).contiguous();
  auto result = at::empty({paddedSize()}, own.options());
  ranks.all_gather(result, own);
  return result;
}

at::Tensor FlatPartition::ownPart(const at::Tensor &all) const {
  return all.narrow(0, rank * ownSize, ownSize);
}

at::Tensor FlatPartition::ownValues() const {
  return needsGradient ? ownMaster.detach() : resting.detach().to(masterType);
}

void FlatPartition::setOwnValues(const at::Tensor &values) {
  NormalTensors normal;
  if (needsGradient)
    ownMaster.copy_(values);
  else
    resting.copy_(values);
  overwritten = true;
  noteVersions();
}

} // namespace device_shim::detail
