#include "bank.h"
#include "../../cases.h"

namespace {

const torch::Device kGpu(torch::kCUDA, 2);

} // namespace

void query_bad() {
  Bank bank(kGpu);
  bank.add(torch::rand({3, 4}));
  bank.nearest(torch::rand({4}));
}

void query_ok() {
  Bank bank(kGpu);
  bank.add(torch::rand({3, 4}));
  bank.nearestPlaced(torch::rand({4}));
}

void statistics_bad() {
  Bank bank(kGpu);
  bank.add(torch::rand({3, 4}));
  centred(bank.statistics(), torch::rand({2, 4}, kGpu));
}

void statistics_ok() {
  Bank bank(kGpu);
  bank.add(torch::rand({3, 4}));
  centredPlaced(bank.statistics(), torch::rand({2, 4}, kGpu));
}

DT_MAIN(query_bad, query_ok, statistics_bad, statistics_ok)
