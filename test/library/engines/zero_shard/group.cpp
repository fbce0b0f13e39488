#include "zero.h"

namespace zero {

namespace {

ncclDataType_t type_of(const torch::Tensor& t) {
  switch (t.scalar_type()) {
    case torch::kFloat: return ncclFloat32;
    case torch::kHalf: return ncclFloat16;
    case torch::kDouble: return ncclFloat64;
    case torch::kLong: return ncclInt64;
    default: TORCH_CHECK(false, "no NCCL type for ", t.scalar_type());
  }
}

} // namespace

World World::from_env(const ncclUniqueId& id) {
  World world;
  world.rank = env_int("RANK", 0);
  world.size = env_int("WORLD_SIZE", 1);
  world.local_rank = env_int("LOCAL_RANK", 0);
  world.id = id;
  return world;
}

Group Group::open(const World& world) {
  Group group;
  group.rank_ = world.rank;
  group.size_ = world.size;
  CUDA_OK(cudaSetDevice(world.local_rank));
  NCCL_OK(ncclCommInitRank(&group.comm_, world.size, world.id, world.rank));
  CUDA_OK(cudaStreamCreateWithFlags(&group.stream_, cudaStreamNonBlocking));
  return group;
}

Group Group::open_with_side_stream(const World& world) {
  Group group;
  group.rank_ = world.rank;
  group.size_ = world.size;
  int least = 0, greatest = 0;
  CUDA_OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CUDA_OK(cudaStreamCreateWithPriority(&group.stream_, cudaStreamNonBlocking, greatest)); // [[device-rank-collision]]
  CUDA_OK(cudaSetDevice(world.local_rank));
  NCCL_OK(ncclCommInitRank(&group.comm_, world.size, world.id, world.rank));
  return group;
}

void Group::rebuild(const World& world) {
  if (comm_) {
    ncclResult_t pending = ncclSuccess;
    ncclCommGetAsyncError(comm_, &pending);
    ncclCommAbort(comm_);
    comm_ = nullptr;
  }
  NCCL_OK(ncclCommInitRank(&comm_, world.size, world.id, world.rank)); // [[device-rank-collision]]
  CUDA_OK(cudaSetDevice(world.local_rank));
  CUDA_OK(cudaStreamCreate(&stream_));
}

void Group::close() {
  if (comm_)
    ncclCommDestroy(comm_);
  comm_ = nullptr;
}

void Group::all_reduce(torch::Tensor& t) const {
  NCCL_OK(ncclAllReduce(t.data_ptr(), t.data_ptr(), t.numel(), type_of(t), ncclSum, comm_, stream_));
}

void Group::broadcast(torch::Tensor& t, int root) const {
  TORCH_CHECK(t.is_cuda() && t.is_contiguous(), "broadcast needs contiguous CUDA tensors");
  NCCL_OK(ncclBroadcast(t.data_ptr(), t.data_ptr(), t.numel(), type_of(t), root, comm_, stream_));
}

torch::Tensor Group::all_gather(const torch::Tensor& shard) const {
  auto full = torch::empty({size_ * shard.numel()}, shard.options());
  NCCL_OK(ncclAllGather(shard.data_ptr(), full.data_ptr(), shard.numel(), type_of(shard), comm_, stream_));
  return full;
}

torch::Tensor Group::reduce_scatter(const torch::Tensor& full) const {
  auto shard = torch::empty({full.numel() / size_}, full.options());
  NCCL_OK(ncclReduceScatter(full.data_ptr(), shard.data_ptr(), shard.numel(), type_of(full), ncclSum, comm_, stream_));
  return shard;
}

int64_t Group::agree_on_step(int64_t step) const {
  auto value = torch::full({1}, step, torch::kLong);
  NCCL_OK(ncclBroadcast(value.data_ptr<int64_t>(), value.data_ptr<int64_t>(), 1, ncclInt64, 0, comm_, stream_)); // [[device-kernel-launch]]
  return value.item<int64_t>();
}

bool Group::any_overflow(const std::vector<torch::Tensor>& grads) const {
  auto found = torch::zeros({1}, torch::kCUDA);
  for (const auto& g : grads)
    found += g.isfinite().logical_not().any().to(found.device(), torch::kFloat);
  all_reduce(found);
  return found.item<float>() > 0;
}

double Group::mean_loss(double loss) const {
  int device = 0;
  NCCL_OK(ncclCommCuDevice(comm_, &device));
  auto total = torch::tensor({loss}, torch::dtype(torch::kDouble)).to(torch::Device(torch::kCUDA, device));
  all_reduce(total);
  return total.item<double>() / size_;
}

BlockImpl::BlockImpl(int64_t width) {
  up = register_module("up", torch::nn::Linear(width, 2 * width));
  down = register_module("down", torch::nn::Linear(2 * width, width));
}

torch::Tensor BlockImpl::forward(const torch::Tensor& x) { return x + down(torch::gelu(up(x))); }

torch::Tensor train_first_step(const World& world, const Group& group, Block& block) {
  const auto seed = 1234 + world.local_rank;
  torch::manual_seed(seed);
  block->to(torch::Device(torch::kCUDA, 0)); // [[device-rank-collision]]
  auto bucket = pack_bucket(block->parameters());
  group.broadcast(bucket, 0);
  return bucket;
}

torch::Tensor train_step(const World& world, const Group& group, Block& block) {
  const torch::Device device(torch::kCUDA, static_cast<c10::DeviceIndex>(world.local_rank));
  block->to(device);
  const auto x = torch::rand({4, block->up->options.in_features()}, device);
  block->forward(x).pow(2).mean().backward();
  std::vector<torch::Tensor> grads;
  for (const auto& p : block->parameters())
    grads.push_back(p.grad());
  auto bucket = pack_bucket(grads);
  group.all_reduce(bucket);
  return bucket / group.size();
}

} // namespace zero
