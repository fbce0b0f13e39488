#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/torch.h>

#include "../../cases.h"
#include "loading.h"

static c10::intrusive_ptr<c10d::Store> initDistributed() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.numWorkers = 1;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

void finetune_with_the_default_map_bad() {
  auto store = initDistributed();
  auto model = loadForFinetuning("qwen-14b");
  TORCH_CHECK(!model.empty());
}

void finetune_whole_model_per_rank_ok() {
  auto store = initDistributed();
  auto model = loadWhole("qwen-14b", torch::Device(torch::kCUDA, 0));
  TORCH_CHECK(!model.empty());
}

DT_MAIN(finetune_with_the_default_map_bad, finetune_whole_model_per_rank_ok)
