// Objects whose methods are called more than once: what one leaves, another meets.
// REQUIRES: torch
// RUN: not %device-tidy %s %torch | FileCheck %s --implicit-check-not=warning:
#include <torch/script.h>
#include <torch/torch.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

// A setter that misses a member when the device changes again.
class Trainer {
public:
  explicit Trainer(torch::Device device) : device_(device) { net_->to(device_); }
  void setDevice(torch::Device device) {
    device_ = device;
    net_->to(device_);
  }
  void setWeights(torch::Tensor weights) { weights_ = weights.to(device_); }
  void setScale(torch::Tensor scale) { scale_ = scale.to(device_); }
  torch::Tensor weighted(torch::Tensor x) {
    // CHECK: :[[@LINE+1]]:{{.*}} warning: {{.*}}'weights_'{{.*}} [device-mixed-op]
    return net_->forward(x.to(device_)) * weights_;
  }
  torch::Tensor scaled(torch::Tensor x) { return net_->forward(x.to(device_)) * scale_.to(device_); }

private:
  torch::Device device_;
  torch::nn::Linear net_{3, 3};
  torch::Tensor weights_, scale_;
};

// What is brought to the host meets only what is there, and so is what comes of both.
struct Scene {
  torch::Tensor points, offset;
};
class Cloud {
public:
  Cloud(const Scene &scene, torch::Device device) : means_(scene.points.to(device)), offset_(scene.offset) {}
  void save(std::ostream &out, bool isShifted) {
    const torch::Tensor means = isShifted ? means_.cpu() / 2 + offset_ : means_.cpu();
    out.write(reinterpret_cast<const char *>(means[0].data_ptr()), 12);
  }

private:
  torch::Tensor means_, offset_;
};

// What a reset makes anew is on the CPU. Counts do not stop what follows.
class Replay {
public:
  Replay(int64_t capacity, torch::Device storage)
      : capacity_(capacity), rows_(torch::zeros({capacity, 3}, storage)),
        priorities_(torch::zeros({capacity}, storage)), ages_(torch::zeros({capacity}, storage)) {}
  void add(const torch::Tensor &row) {
    rows_[size_].copy_(row);
    ++size_;
  }
  torch::Tensor sample(int64_t n) {
    TORCH_CHECK(size_ > 0, "nothing to sample");
    // CHECK: :[[@LINE+1]]:{{.*}} warning: {{.*}}'rows_'{{.*}} [device-mixed-op]
    return rows_.index_select(0, priorities_.multinomial(n));
  }
  torch::Tensor oldest() {
    TORCH_CHECK(size_ > 0, "nothing is there");
    return rows_.index_select(0, ages_.argmax(0, true));
  }
  void resetPriorities() { priorities_ = torch::ones({capacity_}); }
  void resetAges() { ages_ = torch::zeros_like(ages_); }

private:
  int64_t capacity_, size_ = 0;
  torch::Tensor rows_, priorities_, ages_;
};

// The members are behind a pointer; what is not set is not used.
class Service {
public:
  Service() : impl_(std::make_unique<Impl>()) {}
  void start(torch::Device device) {
    impl_->device = device;
    impl_->table = torch::rand({3, 3}, device);
    if (impl_->boosts.defined())
      impl_->boosts = impl_->boosts.to(device);
  }
  void setBoosts(const std::vector<float> &boosts) { impl_->boosts = torch::tensor(boosts); }
  void setBias(const std::vector<float> &bias) { impl_->bias = torch::tensor(bias).to(impl_->device); }
  torch::Tensor boosted() {
    // CHECK: :[[@LINE+1]]:{{.*}} warning: {{.*}}'impl_->boosts'{{.*}} [device-mixed-op]
    return impl_->boosts.defined() ? impl_->table * impl_->boosts : impl_->table;
  }
  torch::Tensor biased() { return impl_->bias.defined() ? impl_->table + impl_->bias.to(impl_->device) : impl_->table; }

private:
  struct Impl {
    torch::Device device{torch::kCPU};
    torch::Tensor table, boosts, bias;
  };
  std::unique_ptr<Impl> impl_;
};

// All that is kept follows.
class Stream {
public:
  explicit Stream(torch::Device device) : device_(device) {}
  torch::Tensor feed(const torch::Tensor &samples) {
    auto audio = samples.to(device_);
    if (tail_)
      audio = torch::cat({*tail_, audio});
    tail_ = audio.slice(0, 3).clone();
    return audio.cpu();
  }
  void remember(const std::string &name, const torch::Tensor &word) { words_[name] = word.to(device_); }
  torch::Tensor score(const std::string &name, const torch::Tensor &x) { return words_.at(name) * x.to(device_); }
  void to(torch::Device device) {
    device_ = device;
    if (tail_)
      tail_ = tail_->to(device);
    for (auto &[name, word] : words_)
      word = word.to(device);
  }

private:
  torch::Device device_;
  c10::optional<torch::Tensor> tail_;
  std::map<std::string, torch::Tensor> words_;
};

// A module is moved as a whole by whoever holds it.
struct HeadsImpl : torch::nn::Cloneable<HeadsImpl> {
  HeadsImpl() { reset(); }
  void reset() override { head = register_module("head", torch::nn::Linear(3, 3)); }
  torch::Tensor forward(torch::Tensor x) { return head->forward(x); }
  torch::nn::Linear head{nullptr};
};

// A C interface: functions that share globals live like the methods of a class.
namespace {
struct Session {
  Session(int64_t size, torch::Device where) : device(where), net(size, size) { net->to(device); }
  torch::Device device;
  torch::nn::Linear net;
  torch::Tensor mean, scale, sum;
};
std::map<int, std::unique_ptr<Session>> sessions;
int nextHandle = 1;
Session &sessionOf(int handle) {
  const auto found = sessions.find(handle);
  TORCH_CHECK(found != sessions.end(), "no such session");
  return *found->second;
}
} // namespace

int openSession(int size, const char *device) {
  const int handle = nextHandle++;
  sessions[handle] = std::make_unique<Session>(size, torch::Device(std::string(device)));
  return handle;
}

void setMean(int handle, int size) {
  Session &session = sessionOf(handle);
  session.mean = torch::zeros({size});
  session.scale = torch::ones({size}, session.device);
}

void changeDevice(int handle, const char *device) {
  Session &session = sessionOf(handle);
  session.device = torch::Device(std::string(device));
  session.net->to(session.device);
}

torch::Tensor normalise(int handle, torch::Tensor x) {
  Session &session = sessionOf(handle);
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: '*' can get {{.*}} and 'session.scale' on a device chosen at run time before it changed [device-mixed-op]
  x = x.to(session.device) * session.scale;
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: '-' can get 'x' on {{.*}} and 'session.mean' on cpu [device-mixed-op]
  return x - session.mean;
}

torch::Tensor apply(int handle, torch::Tensor x) {
  Session &session = sessionOf(handle);
  return session.net->forward(x.to(session.device));
}

// What an object moves, and what it keeps although it was given like the others.
class Graph {
public:
  Graph(torch::Tensor from, torch::Tensor to, torch::Tensor counts)
      : from_(from), to_(to), counts_(counts) {}
  void to(torch::Device device) {
    from_ = from_.to(device);
    to_ = to_.to(device);
  }
  torch::Tensor degree() { return from_ + to_; }
  // CHECK: [[@LINE+2]]:{{[0-9]+}}: warning: '*' can get 'from_' on {{.*}} and 'counts_' on 'counts.device() before it changed' [device-mixed-op]
  // CHECK: note: stays where it was when '{{from_|to_}}' is moved to 'device' here
  torch::Tensor scaled() { return from_ * counts_; }

private:
  torch::Tensor from_, to_, counts_;
};

// load() is called once, or for another set of models: those of an earlier call are not used with it.
class Ensemble {
public:
  void load(const std::vector<std::string> &paths, const std::string &device) {
    device_ = torch::Device(device);
    for (const auto &path : paths)
      models_.push_back(torch::jit::load(path, device_));
  }
  torch::Tensor mean(const torch::Tensor &x) {
    std::vector<torch::Tensor> results;
    const auto there = x.to(device_);
    for (auto &model : models_)
      results.push_back(model.forward({there}).toTensor());
    return torch::stack(results).mean(0);
  }

private:
  torch::Device device_ = torch::kCPU;
  std::vector<torch::jit::Module> models_;
};
