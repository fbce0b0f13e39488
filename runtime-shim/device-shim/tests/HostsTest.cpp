// A job over several hosts: two network namespaces that only a pair of virtual interfaces connects, and,
// where those cannot be made, several addresses of one host.
#include "Training.h"

#include <device_shim/Distributed.h>
#include <device_shim/DistributedDataParallel.h>

#include <sys/types.h>
#include <unistd.h>

using namespace device_shim;
using namespace training;

namespace {

// Two ranks, each in a namespace of its own, as `first` and `second` host of a network. All of it ends with
// the shell, which is in a namespace itself: nothing is changed on this machine.
const char *const kTwoHosts = R"SH(
set -e
ip link set lo up
unshare --net sleep 60 &
other=$!
trap 'kill $other' EXIT
for attempt in 1 2 3 4 5 6 7 8 9 10; do
  [ "$(readlink /proc/$other/ns/net)" = "$(readlink /proc/self/ns/net)" ] || break
  sleep 0.1
done
ip link add first type veth peer name second netns $other
ip addr add 10.77.0.1/24 dev first
ip link set first up
nsenter --target $other --net sh -c 'ip addr add 10.77.0.2/24 dev second; ip link set second up; ip link set lo up'
export WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=10.77.0.1 MASTER_PORT=29417 OMP_NUM_THREADS=1
RANK=1 nsenter --target $other --net "$PROGRAM" --worker trains_over_hosts &
second=$!
RANK=0 "$PROGRAM" --worker trains_over_hosts
wait $second
)SH";

bool canMakeNamespaces() {
  return std::system("unshare --net sh -c 'ip link add probe type veth peer name other' >/dev/null 2>&1") ==
         0;
}

} // namespace

RANK_WORKER(trains_over_hosts) {
  auto all = init_distributed();
  torch::manual_seed(all->rank());
  Net net;
  DistributedDataParallel<Net> model(net, all);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  for (int step = 0; step < 5; ++step) {
    const auto own = batchOf(step, 8).part(all->rank(), all->size());
    optimizer.zero_grad();
    loss(model.forward(own.input), own).backward();
    optimizer.step();
  }
  double sum = 0;
  for (const auto &parameter : net->parameters())
    sum += parameter.sum().item<double>();
  MUST(all->reduce_number(sum, Reduction::minimum) == all->reduce_number(sum, Reduction::maximum));
  std::cout << "rank " << all->rank() << " trained" << std::endl;
}

TEST(Hosts, TwoNetworkNamespaces) {
  if (!canMakeNamespaces())
    GTEST_SKIP() << "network namespaces need root and iproute2";
  const auto program = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto log = ranks::temporaryDirectory() + "/log";
  setenv("PROGRAM", program.c_str(), 1);
  setenv("SCRIPT", kTwoHosts, 1);
  const int status = std::system(("timeout 100 unshare --net sh -c \"$SCRIPT\" >" + log + " 2>&1").c_str());
  std::stringstream text;
  text << std::ifstream(log).rdbuf();
  EXPECT_EQ(status, 0) << text.str();
  EXPECT_NE(text.str().find("rank 0 trained"), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("rank 1 trained"), std::string::npos) << text.str();
}

TEST(Hosts, SeveralAddresses) { ranks::runAll({"trains_over_hosts", 3, -1, {{"MASTER_ADDR", "127.0.0.2"}}}); }
