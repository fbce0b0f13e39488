// REQUIRES: torch
// RUN: not %device-tidy --checks=device-host-access %s -- %torch-flags | FileCheck %s --implicit-check-not=warning:
// RUN: not %device-tidy --checks=device-host-access --level=latent %s -- %torch-flags | FileCheck %s --check-prefix=LATENT
// A call that is not followed, because there were too many, leads to no finding.
#include <torch/torch.h>

#include <memory>
#include <mutex>

struct Box {
  explicit Box(int number, bool isHost) : number(number), onHost(isHost) {}
  bool isHost() const { return onHost; }
  int kind() const { // 400 calls of it cost more than a function may
    int steps = 0;
    for (int i = 0; i < 8; ++i)
      steps += i % 3 + 1;
    return number >= 0 && onHost && steps > 0 ? 1 : 2;
  }
  int number;
  bool onHost;
};

// 400 boxes, each with a number of its own.
#define BOX sum += Box(__COUNTER__, false).kind() + Box(__COUNTER__, false).isHost();
#define BOXES BOX BOX BOX BOX BOX BOX BOX BOX BOX BOX
#define MANY BOXES BOXES BOXES BOXES BOXES BOXES BOXES BOXES BOXES BOXES

float many(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda());
  int sum = 0;
  MANY MANY MANY MANY
  const Box box(1000000, false);
  if (box.isHost()) // run whenever it is called
    return x.data_ptr<float>()[1];
  if (box.kind() == 1)
    // LATENT: [[@LINE+1]]:{{[0-9]+}}: warning: 'x.data_ptr<float>()[2]'
    return x.data_ptr<float>()[2];
  return static_cast<float>(sum);
}

// Of an object of which nothing is known the class is not open: it is no mistake for certain.
struct Context {
  virtual ~Context() = default;
  virtual int kind() const { return 0; }
};
struct Gpu : Context {
  int kind() const override { return 1; }
};
std::shared_ptr<Context> find(const char *name);
float unseenClass(torch::Tensor x, int n) {
  TORCH_CHECK(x.is_cuda());
  std::shared_ptr<Context> context = std::make_shared<Gpu>();
  if (n == 3)
    context = find("a");
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'x.data_ptr<float>()[4]' works on memory of cpu and can get
  return context->kind() == 0 ? x.data_ptr<float>()[4] : 0;
}

// A function that is called once leaves what it sets, whenever that was.
static std::once_flag isReady;
static bool hasCuda = false;
float once(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda());
  std::call_once(isReady, [] { hasCuda = torch::cuda::is_available(); });
  return hasCuda ? 0 : x.data_ptr<float>()[3];
}
