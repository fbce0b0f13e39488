#include "analyzer/lsp/Progress.h"

namespace devicetidy::lsp {

namespace json = llvm::json;

Progress::Progress(llvm::lsp::MessageHandler &handler)
    : create(handler.outgoingRequest<RawJson, RawJson>("window/workDoneProgress/create",
                                                       [this](json::Value, llvm::Expected<RawJson> reply) {
                                                         const bool isKnown = static_cast<bool>(reply);
                                                         if (!isKnown)
                                                           llvm::consumeError(reply.takeError());
                                                         accepted(isKnown);
                                                       })),
      progress(handler.outgoingNotification<RawJson>("$/progress")) {}

void Progress::enable() {
  const std::lock_guard<std::mutex> lock(mutex);
  isEnabled = true;
}

void Progress::begin(const std::string &title) {
  const std::lock_guard<std::mutex> lock(mutex);
  shownTitle = title;
  if (state == State::Outlived) // the token that is on its way serves for this too
    state = State::Asked;
  if (!isEnabled || state != State::Idle)
    return;
  state = State::Asked;
  ++tokens;
  create({json::Object{{"token", token()}}}, token());
}

void Progress::end() {
  const std::lock_guard<std::mutex> lock(mutex);
  if (state == State::Shown) {
    report(json::Object{{"kind", "end"}});
    state = State::Idle;
  } else if (state == State::Asked) {
    state = State::Outlived;
  }
}

/// Called by the thread that reads the client's messages.
void Progress::accepted(bool isKnown) {
  const std::lock_guard<std::mutex> lock(mutex);
  const bool isOver = state == State::Outlived;
  state = State::Idle;
  if (!isKnown)
    return;
  report(json::Object{{"kind", "begin"}, {"title", shownTitle}});
  if (isOver) // a client may keep a token that it created until its end
    report(json::Object{{"kind", "end"}});
  else
    state = State::Shown;
}

void Progress::report(json::Object value) {
  progress({json::Object{{"token", token()}, {"value", std::move(value)}}});
}

} // namespace devicetidy::lsp
