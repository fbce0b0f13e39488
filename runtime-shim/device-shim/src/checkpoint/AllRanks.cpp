#include "checkpoint/AllRanks.h"

#include <device_shim/Error.h>

#include <exception>

namespace device_shim::detail {
namespace {

std::string firstLine(const std::string &text) {
  return text.empty() ? "unknown error" : text.substr(0, text.find('\n'));
}

} // namespace

void onRankZero(Communicator &ranks, const std::function<void()> &work) {
  std::string problem;
  if (ranks.rank() == 0) {
    try {
      work();
    } catch (const std::exception &error) {
      problem = firstLine(error.what());
    }
  }
  problem = ranks.broadcast_text(problem);
  if (!problem.empty())
    throw Error("rank 0 could not save: " + problem);
}

void onAllRanks(Communicator &ranks, const std::function<void()> &work) {
  std::exception_ptr own;
  std::string problem;
  try {
    work();
  } catch (const std::exception &error) {
    own = std::current_exception();
    problem = firstLine(error.what());
  }
  const double first = ranks.reduce_number(own ? ranks.rank() : ranks.size(), Reduction::minimum);
  if (first == ranks.size())
    return;
  problem = ranks.broadcast_text(problem, static_cast<int>(first));
  if (own)
    std::rethrow_exception(own);
  throw Error("rank " + std::to_string(static_cast<int>(first)) +
              " could not load, so no rank has loaded anything: " + problem);
}

void requireSameFile(Communicator &ranks, const std::string &digest, const std::string &path) {
  const bool same = digest == ranks.broadcast_text(digest);
  const double first = ranks.reduce_number(same ? ranks.size() : ranks.rank(), Reduction::minimum);
  if (first != ranks.size())
    throw Error("'" + path + "' has other parameters on rank " + std::to_string(static_cast<int>(first)) +
                " than on rank 0, so no rank has loaded anything; give all ranks the same file");
}

} // namespace device_shim::detail
