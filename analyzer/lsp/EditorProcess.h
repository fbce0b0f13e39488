//===- EditorProcess.h - ends the server with its editor --------*- C++ -*-===//
//
// Watches the process of the editor and ends the server when it has gone.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include <sys/types.h>

namespace devicetidy::lsp {

/// An editor that crashes usually closes the input of the server, but another process may hold it open. The
/// protocol therefore has the id of the process of the editor.
class EditorProcess {
public:
  EditorProcess() = default;
  ~EditorProcess();
  EditorProcess(const EditorProcess &) = delete;
  EditorProcess &operator=(const EditorProcess &) = delete;

  /// From now on this process ends, as by SIGTERM, within seconds after process `id` has. Does nothing when
  /// there is no such process now: then the editor is on another machine, or outside of a container.
  void follow(std::int64_t id);

private:
  void loop(pid_t id);

  std::mutex mutex;
  std::condition_variable wake;
  bool isEnding = false;
  std::thread thread;
};

} // namespace devicetidy::lsp
