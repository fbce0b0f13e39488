// Copies through a stream, an archive or a file that was written before: without a device of its own a load puts
// tensors where they were saved.
#include "../cases.h"

#include <sstream>
#include <torch/torch.h>

namespace {

torch::nn::Linear placed(torch::Device device) {
  torch::nn::Linear model(2, 2);
  model->to(device);
  return model;
}

void copyWeights(torch::nn::Linear &from, torch::nn::Linear &to) {
  std::stringstream stream;
  torch::save(from, stream);
  torch::load(to, stream);
}
void target_network_ok() {
  auto policy = placed(torch::kCUDA);
  torch::nn::Linear target(2, 2);
  copyWeights(policy, target);
  target(torch::rand({3, 2}, torch::kCUDA));
}
void target_network_bad() {
  auto policy = placed(torch::kCPU);
  auto target = placed(torch::kCUDA);
  copyWeights(policy, target);
  target(torch::rand({3, 2}, torch::kCUDA)); // [[device-mixed-op]]
}

void given_device_ok() {
  std::stringstream stream;
  auto saved = placed(torch::kCPU), model = placed(torch::kCUDA);
  torch::save(saved, stream);
  torch::load(model, stream, torch::kCUDA);
  model(torch::rand({3, 2}, torch::kCUDA));
}

void tensor_ok() {
  std::stringstream stream;
  torch::save(torch::rand(3, torch::kCUDA), stream);
  torch::Tensor read;
  torch::load(read, stream);
  auto sum = read + torch::rand(3, torch::kCUDA);
}
void tensor_bad() {
  std::stringstream stream;
  torch::save(torch::rand(3), stream);
  torch::Tensor read;
  torch::load(read, stream);
  auto sum = read + torch::rand(3, torch::kCUDA); // [[device-mixed-op]]
}

void rewound_bad() {
  std::stringstream stream;
  torch::save(torch::rand(3), stream);
  stream.clear();
  stream.seekg(0);
  torch::Tensor read;
  torch::load(read, stream);
  auto sum = read + torch::rand(3, torch::kCUDA); // [[device-mixed-op]]
}

void best_model_ok() {
  const std::string path = "/tmp/device-tidy-case-best.pt";
  auto model = placed(torch::kCUDA);
  torch::save(model, path);
  torch::nn::Linear best(2, 2);
  torch::load(best, path);
  best(torch::rand({3, 2}, torch::kCUDA));
}
void best_model_bad() {
  const std::string path = "/tmp/device-tidy-case-last.pt";
  auto model = placed(torch::kCUDA);
  torch::save(model, path);
  torch::nn::Linear best(2, 2);
  torch::load(best, path);
  best(torch::rand({3, 2})); // [[device-mixed-op]]
}

void archives_ok() {
  auto policy = placed(torch::kCUDA);
  torch::serialize::OutputArchive out;
  policy->save(out);
  std::stringstream stream;
  out.save_to(stream);
  torch::serialize::InputArchive in;
  in.load_from(stream);
  torch::nn::Linear target(2, 2);
  target->load(in);
  target(torch::rand({3, 2}, torch::kCUDA));
}
void archives_bad() {
  torch::nn::Linear policy(2, 2);
  torch::serialize::OutputArchive out;
  policy->save(out);
  std::stringstream stream;
  out.save_to(stream);
  torch::serialize::InputArchive in;
  in.load_from(stream);
  auto target = placed(torch::kCUDA);
  target->load(in);
  target(torch::rand({3, 2}, torch::kCUDA)); // [[device-mixed-op]]
}

// A model and a number beside it: two devices in one archive.
void checkpoint_ok() {
  auto model = placed(torch::kCUDA);
  torch::serialize::OutputArchive out;
  model->save(out);
  out.write("epoch", torch::tensor(3));
  std::stringstream stream;
  out.save_to(stream);
  torch::serialize::InputArchive in;
  in.load_from(stream);
  torch::nn::Linear restored(2, 2);
  restored->load(in);
  restored(torch::rand({3, 2}, torch::kCUDA));
}

// The stream holds something else by now.
void replaced_ok() {
  std::stringstream stream, other;
  torch::save(torch::rand(3), stream);
  torch::save(torch::rand(3, torch::kCUDA), other);
  stream.str(other.str());
  torch::Tensor read;
  torch::load(read, stream);
  auto sum = read + torch::rand(3, torch::kCUDA);
}

void read_optionally(c10::optional<torch::Device> device) {
  std::stringstream stream;
  torch::save(torch::rand(3), stream);
  torch::Tensor read;
  torch::load(read, stream, device);
  auto sum = read + torch::rand(3, torch::kCUDA);
}
void optional_device_ok() { read_optionally(torch::Device(torch::kCUDA)); }

} // namespace

DT_MAIN(target_network_ok, target_network_bad, given_device_ok, tensor_ok, tensor_bad, rewound_bad, best_model_ok, best_model_bad,
        archives_ok, archives_bad,
        checkpoint_ok, replaced_ok, optional_device_ok)
