#include "comm.h"

namespace pllm {

ExpertGroup::ExpertGroup(const ncclUniqueId& id, int rank, int world) : world_(world) {
  local_rank_ = env_int("LOCAL_RANK", rank);
  NCCL_CHECK(ncclCommInitRank(&comm_, world, id, rank)); // [[device-rank-collision]]
  bind();
}

void ExpertGroup::bind() { c10::cuda::set_device(static_cast<c10::DeviceIndex>(local_rank_)); }

void ExpertGroup::exchange(const torch::Tensor& routed, torch::Tensor& received) {
  const int64_t part = routed.numel() / world_;
  const auto stream = at::cuda::getCurrentCUDAStream(routed.get_device());
  NCCL_CHECK(ncclGroupStart());
  for (int peer = 0; peer < world_; ++peer) {
    NCCL_CHECK(ncclSend(routed.data_ptr<float>() + peer * part, part, ncclFloat, peer, comm_, stream));
    NCCL_CHECK(ncclRecv(received.data_ptr<float>() + peer * part, part, ncclFloat, peer, comm_, stream));
  }
  NCCL_CHECK(ncclGroupEnd());
}

Worker::~Worker() {
  if (comm_)
    ncclCommDestroy(comm_);
  if (done_)
    cudaEventDestroy(done_);
}

void Worker::initialize(const ncclUniqueId& id) {
  local_rank_ = env_int("LOCAL_RANK", 0);
  TORCH_CHECK(cudaSetDevice(local_rank_) == cudaSuccess, "no GPU for local rank ", local_rank_);
  device_ = torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(local_rank_));
  cudaEventCreateWithFlags(&done_, cudaEventDisableTiming);
  NCCL_CHECK(ncclCommInitRank(&comm_, world_, id, rank_));
  allocate();
}

void Worker::allocate() {
  weight_ = torch::rand({width_, width_}, torch::kCUDA);
  columns_ = torch::empty({world_, width_}, torch::TensorOptions(torch::kCUDA));
  gathered_ = torch::empty({world_, width_}, torch::TensorOptions().device("cuda:0").dtype(torch::kFloat)); // [[device-rank-collision]]
}

torch::Tensor Worker::row_parallel(const torch::Tensor& x) {
  auto partial = torch::matmul(x.to(device_), weight_).contiguous();
  const auto stream = at::cuda::getCurrentCUDAStream();
  NCCL_CHECK(ncclAllReduce(partial.data_ptr<float>(), partial.data_ptr<float>(), partial.numel(), ncclFloat, ncclSum,
                           comm_, stream));
  cudaEventRecord(done_, stream);
  return partial;
}

torch::Tensor Worker::gather_columns(const torch::Tensor& x) {
  const auto mine = torch::matmul(x.to(device_), weight_).contiguous();
  NCCL_CHECK(ncclAllGather(mine.data_ptr<float>(), columns_.data_ptr<float>(), width_, ncclFloat, comm_,
                           at::cuda::getCurrentCUDAStream()));
  return columns_.reshape({1, -1});
}

torch::Tensor Worker::gather_logits(const torch::Tensor& x) {
  const auto mine = torch::matmul(x.to(device_), weight_).contiguous();
  NCCL_CHECK(ncclAllGather(mine.data_ptr<float>(), gathered_.data_ptr<float>(), width_, ncclFloat, comm_,
                           at::cuda::getCurrentCUDAStream()));
  return gathered_.reshape({1, -1}).cpu();
}

std::vector<int> Worker::broadcast_lengths(const std::vector<int>& lengths) {
  auto buffer = torch::empty({static_cast<int64_t>(lengths.size())}, torch::kInt);
  int* values = buffer.data_ptr<int>();
  if (rank_ == 0)
    std::copy(lengths.begin(), lengths.end(), values);
  NCCL_CHECK(ncclBroadcast(values, values, buffer.numel(), ncclInt, 0, comm_, at::cuda::getCurrentCUDAStream())); // [[device-kernel-launch]]
  return {values, values + buffer.numel()};
}

torch::Tensor Worker::broadcast_tokens(const std::vector<int>& tokens) {
  auto buffer = torch::tensor(tokens, torch::kInt);
  buffer = buffer.to(device_);
  NCCL_CHECK(ncclBroadcast(buffer.data_ptr<int>(), buffer.data_ptr<int>(), buffer.numel(), ncclInt, 0, comm_,
                           at::cuda::getCurrentCUDAStream()));
  return buffer.to(torch::kLong);
}

void Worker::send_hidden(const torch::Tensor& hidden) {
  const auto packed = hidden.to(device_).contiguous();
  NCCL_CHECK(ncclSend(packed.data_ptr<float>(), packed.numel(), ncclFloat, (rank_ + 1) % world_, comm_,
                      at::cuda::getCurrentCUDAStream()));
}

torch::Tensor Worker::receive_hidden(int64_t rows) {
  auto hidden = torch::empty({rows, width_}, torch::dtype(torch::kFloat).device(torch::kCUDA, local_rank_));
  NCCL_CHECK(ncclRecv(hidden.data_ptr<float>(), hidden.numel(), ncclFloat, (rank_ + world_ - 1) % world_, comm_,
                      at::cuda::getCurrentCUDAStream()));
  return hidden;
}

} // namespace pllm
