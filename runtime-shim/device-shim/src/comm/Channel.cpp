#include "comm/Channel.h"

#include "base/NormalTensors.h"
#include "comm/SlicedWait.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <device_shim/Error.h>

#include <algorithm>
#include <map>
#include <stdexcept>

namespace device_shim::detail {
namespace {

using Calls = std::map<int, std::string>; // by rank

std::string firstLine(const std::string &text) { return text.substr(0, text.find('\n')); }

// "rank 0", "ranks 1 and 3", "ranks 0, 2, 5 and 12 more".
std::string listOf(const std::vector<int> &ranks) {
  constexpr size_t kShown = 6;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  const size_t shown = std::min(ranks.size(), kShown);
  for (size_t i = 0; i < shown; ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return ranks.size() > shown ? text + " and " + std::to_string(ranks.size() - shown) + " more" : text;
}

// "rank 0 called 'A', ranks 1 and 2 called 'B'"; "" where all called the same.
std::string differenceIn(const std::map<int, std::string> &calls) {
  std::map<std::string, std::vector<int>> ranksOf;
  std::vector<std::string> inOrder;
  for (const auto &[rank, call] : calls) {
    if (ranksOf[call].empty())
      inOrder.push_back(call);
    ranksOf[call].push_back(rank);
  }
  if (inOrder.size() == 1)
    return "";
  std::string text;
  for (const auto &call : inOrder)
    text += (text.empty() ? "" : ", ") + listOf(ranksOf[call]) + " called '" + call + "'";
  return text;
}

at::Tensor bytesOf(const std::string &text) {
  auto bytes = at::zeros({Channel::kMostText}, at::kByte);
  std::copy_n(text.begin(), std::min<size_t>(text.size(), Channel::kMostText), bytes.data_ptr<uint8_t>());
  return bytes;
}

std::string textOf(const at::Tensor &bytes) {
  const auto *begin = bytes.data_ptr<uint8_t>();
  return {begin, std::find(begin, begin + bytes.numel(), 0)};
}

} // namespace

struct Channel::Queue {
  Settings settings;
  Group group;
  Store store; ///< null: the ranks compare over the group
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Item> items;
  bool ending = false;
  bool abandoned = false;    ///< the groups are not to be ended
  std::exception_ptr broken; ///< no operation is started any more; for the thread
  std::string problem;       ///< the same for others

  void run();
  void handle(Item &item);
  void agree(const Item &item);
  Calls callsOfGroup(const Item &item);
  Calls callsOfStore(const Item &item);
  bool isKept(const std::string &key);
  void endWith(std::exception_ptr error, const std::string &what);
};

void Channel::Queue::run() {
  NormalTensors normal;
  while (true) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return ending || !items.empty(); });
    if (items.empty()) {
      if (abandoned)
        group.release();
      return;
    }
    auto item = std::move(items.front());
    items.pop_front();
    lock.unlock();
    handle(item);
  }
}

void Channel::Queue::handle(Item &item) {
  try {
    if (broken)
      std::rethrow_exception(broken);
    agree(item);
    c10::OptionalStreamGuard stream;
    if (item.call && !store)
      stream.reset_stream(item.stream);
    item.result.set_value(item.call && !store ? item.call(*group) : Work());
  } catch (const PeerError &error) {
    endWith(std::current_exception(), error.what());
    item.result.set_exception(broken);
  } catch (const c10::Error &) {
    item.result.set_exception(std::current_exception()); // the caller's mistake: shapes, types, devices
  } catch (const std::logic_error &) {
    item.result.set_exception(std::current_exception()); // also
  } catch (const std::exception &error) {
    const auto cause = firstLine(error.what());
    if (settings.liveness)
      settings.liveness->reportBrokenConnection(item.name, cause);
    const auto what = std::string("a connection to another rank broke in '") + item.name + "': " + cause;
    endWith(std::make_exception_ptr(PeerError(what)), what);
    item.result.set_exception(broken);
  }
}

void Channel::Queue::endWith(std::exception_ptr error, const std::string &what) {
  broken = std::move(error);
  std::lock_guard<std::mutex> lock(mutex);
  problem = what;
}

// What each rank has called.
Calls Channel::Queue::callsOfGroup(const Item &item) {
  std::vector<at::Tensor> own = {bytesOf(item.what)};
  std::vector<std::vector<at::Tensor>> all(1);
  for (int rank = 0; rank < settings.size; ++rank)
    all[0].push_back(at::empty_like(own[0]));
  const auto work = group->allgather(all, own);
  waitInSlices(*work, item.name, settings.liveness.get(), settings.timeout);
  Calls calls;
  for (const auto &bytes : all[0])
    calls.emplace(calls.size(), textOf(bytes));
  return calls;
}

// What rank 0 and this rank have called: with that alone the store answers a few short requests per rank and
// operation. The last to read clears up.
Calls Channel::Queue::callsOfStore(const Item &item) {
  const auto key = std::to_string(item.number), readers = key + "/readers";
  const auto text = item.what.substr(0, kMostText);
  Calls calls{{settings.rank, text}};
  if (settings.rank == 0) {
    store->set(key, std::vector<uint8_t>(text.begin(), text.end()));
    return calls;
  }
  if (!isKept(key))
    return calls;
  const auto first = store->get(key);
  calls.emplace(0, std::string(first.begin(), first.end()));
  if (store->add(readers, 1) == settings.size - 1) {
    store->deleteKey(key);
    store->deleteKey(readers);
  }
  return calls;
}

// Asks in short requests, for a store that waits answers nobody else meanwhile. False when the job has failed
// or the timeout has passed, which is said where the operation is waited for.
bool Channel::Queue::isKept(const std::string &key) {
  const auto end = std::chrono::steady_clock::now() + settings.timeout;
  auto pause = std::chrono::milliseconds(1);
  while (!store->check({key})) {
    if ((settings.liveness && settings.liveness->hasFailed()) || std::chrono::steady_clock::now() > end)
      return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(50));
  }
  return true;
}

// All ranks must have called the same. \throws PeerError, and then the job has failed.
void Channel::Queue::agree(const Item &item) {
  const auto difference = differenceIn(store ? callsOfStore(item) : callsOfGroup(item));
  if (difference.empty())
    return;
  const auto what = "the ranks called different operations: " + difference;
  if (settings.liveness)
    settings.liveness->reportDifference(what);
  throw PeerError(what);
}

Channel::Channel(Settings ofChannel, Group ofAll, Store store)
    : settings(std::move(ofChannel)), group(std::move(ofAll)), queue(std::make_shared<Queue>()) {
  queue->settings = settings;
  queue->group = group;
  queue->store = std::move(store);
  thread = std::thread([shared = queue] { shared->run(); });
}

Channel::~Channel() {
  end(/*abandoning=*/false);
  if (thread.joinable())
    thread.join();
}

void Channel::abandon() {
  end(/*abandoning=*/true);
  if (thread.joinable())
    thread.detach();
  group.release();
}

std::string Channel::problem() const {
  std::lock_guard<std::mutex> lock(queue->mutex);
  return queue->problem;
}

void Channel::end(bool abandoning) {
  {
    std::lock_guard<std::mutex> lock(queue->mutex);
    queue->ending = true;
    queue->abandoned |= abandoning; // for good: the thread outlives this
  }
  queue->changed.notify_all();
}

Channel::Launched Channel::start(const char *name, const std::string &what, at::Device device, Call call) {
  Item item{name, what, compat::currentStream(device), std::move(call), ++count, {}};
  auto result = item.result.get_future().share();
  if (queue->store) {
    std::promise<Work> ready;
    ready.set_value(item.call ? item.call(*group) : Work());
    result = ready.get_future().share();
  }
  {
    std::lock_guard<std::mutex> lock(queue->mutex);
    queue->items.push_back(std::move(item));
  }
  queue->changed.notify_all();
  return result;
}

} // namespace device_shim::detail
