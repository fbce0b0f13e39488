#include "comm/Standstill.h"

#include <sstream>
#include <utility>

namespace device_shim::detail {
namespace {

bool hasCalled(const std::map<int, int64_t> &called, const Standstill::Place &place) {
  const auto found = called.find(place.channel);
  return found != called.end() && found->second >= place.number;
}

std::weak_ptr<char> lifeOfThisThread() {
  thread_local const auto life = std::make_shared<char>();
  return life;
}

} // namespace

void Standstill::called(int channel, int64_t number) {
  std::lock_guard<std::mutex> lock(mutex);
  calls[channel] = number;
}

Standstill::Wait::Wait(Standstill *ofRank, Place place) : standstill(ofRank) {
  if (!standstill)
    return;
  std::lock_guard<std::mutex> lock(standstill->mutex);
  standstill->threads[std::this_thread::get_id()] = {lifeOfThisThread(),
                                                     Waiting{++standstill->waits, std::move(place)}};
}

Standstill::Wait::~Wait() {
  if (!standstill)
    return;
  std::lock_guard<std::mutex> lock(standstill->mutex);
  standstill->threads[std::this_thread::get_id()].waiting.reset();
}

std::optional<Standstill::Record> Standstill::look() {
  std::lock_guard<std::mutex> lock(mutex);
  std::optional<Waiting> first;
  bool allWait = true;
  for (const auto &[id, thread] : threads) {
    if (thread.life.expired())
      continue;
    allWait = allWait && thread.waiting;
    if (thread.waiting && (!first || thread.waiting->id < first->id))
      first = thread.waiting;
  }
  if (!allWait)
    first.reset();
  const auto before = std::exchange(seen, first ? first->id : 0);
  if (!first || before != first->id)
    return std::nullopt;
  return Record{first->id, ++told, first->place, calls};
}

bool Standstill::neverEnds(const Record &own, int rank, const Record &theirs) {
  if (hasCalled(own.called, theirs.place) || hasCalled(theirs.called, own.place))
    return false;
  const Pair now{rank, own.wait, theirs.wait, theirs.told};
  const auto before = std::exchange(suspected, now);
  return before.rank == now.rank && before.own == now.own && before.theirs == now.theirs &&
         before.told < now.told;
}

// Numbers in a line, the description in the second.
std::string Standstill::Record::text() const {
  std::ostringstream text;
  text << wait << ' ' << told << ' ' << place.channel << ' ' << place.number;
  for (const auto &[channel, number] : called)
    text << ' ' << channel << ' ' << number;
  text << '\n' << place.what;
  return text.str();
}

std::optional<Standstill::Record> Standstill::Record::fromText(const std::string &text) {
  Record record;
  const auto end = text.find('\n');
  std::istringstream numbers(text.substr(0, end));
  if (end == std::string::npos ||
      !(numbers >> record.wait >> record.told >> record.place.channel >> record.place.number))
    return std::nullopt;
  record.place.what = text.substr(end + 1);
  for (int64_t channel = 0, number = 0; numbers >> channel >> number;)
    record.called[static_cast<int>(channel)] = number;
  return record;
}

} // namespace device_shim::detail
