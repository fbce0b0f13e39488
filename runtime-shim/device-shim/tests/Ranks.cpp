#include "Ranks.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace ranks {
namespace {

using Clock = std::chrono::steady_clock;

std::map<std::string, std::function<void()>> &workers() {
  static std::map<std::string, std::function<void()>> all;
  return all;
}

/// The temporary directories of this process, gone when it ends.
struct TemporaryDirectories {
  ~TemporaryDirectories() {
    for (const auto &path : paths) {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  }
  std::vector<std::string> paths;
};

struct Process {
  pid_t pid = -1;
  int output = -1;
  bool reaped = false;
  Ended ended;
};

bool isOfALauncher(const std::string &variable) {
  for (const char *prefix : {"SLURM_", "OMPI_", "PMI_", "MV2_", "TORCHELASTIC_"})
    if (variable.rfind(prefix, 0) == 0)
      return true;
  return false;
}

std::vector<std::string> environmentOf(const Launch &launch, int index) {
  std::map<std::string, std::string> variables;
  for (char **entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (isOfALauncher(text)) // the tests may run under one themselves
      continue;
    variables[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  }
  const int size = launch.worldSize ? launch.worldSize : launch.count;
  const auto rank = std::to_string(launch.firstRank + index);
  variables["RANK"] = variables["LOCAL_RANK"] = rank;
  variables["WORLD_SIZE"] = variables["LOCAL_WORLD_SIZE"] = std::to_string(size);
  variables["MASTER_ADDR"] = "127.0.0.1";
  variables["MASTER_PORT"] = std::to_string(launch.port);
  variables["OMP_NUM_THREADS"] = "1";
  if (launch.virtualGpus >= 0) {
    variables["LD_PRELOAD"] = std::getenv("DEVICE_SHIM_VIRTUAL_CUDA");
    variables["VIRTUAL_GPUS"] = std::to_string(launch.virtualGpus);
  }
  for (const auto &[name, value] : launch.environment)
    variables[name] = value;
  std::vector<std::string> result;
  for (const auto &[name, value] : variables)
    if (value != "(unset)")
      result.push_back(name + "=" + value);
  return result;
}

Process start(const Launch &launch, int index) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  const auto variables = environmentOf(launch, index);
  std::vector<char *> pointers;
  for (const auto &variable : variables)
    pointers.push_back(const_cast<char *>(variable.c_str()));
  pointers.push_back(nullptr);
  std::string program = "/proc/self/exe", option = "--worker", name = launch.worker;
  char *arguments[] = {program.data(), option.data(), name.data(), nullptr};
  Process process;
  if (posix_spawn(&process.pid, "/proc/self/exe", &actions, nullptr, arguments, pointers.data()) != 0)
    throw std::runtime_error("cannot start a rank");
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  process.output = ends[0];
  return process;
}

void readOutput(Process &process) {
  char buffer[4096];
  ssize_t got;
  while ((got = read(process.output, buffer, sizeof buffer)) > 0)
    process.ended.output.append(buffer, static_cast<size_t>(got));
}

void reap(Process &process, Clock::time_point begin) {
  int status = 0;
  if (process.reaped || waitpid(process.pid, &status, WNOHANG) != process.pid)
    return;
  process.reaped = true;
  readOutput(process);
  process.ended.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  process.ended.at = now();
  process.ended.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
}

} // namespace

Worker::Worker(const char *name, std::function<void()> body) { workers()[name] = std::move(body); }

int runWorker(int argc, char **argv) {
  if (argc != 3 || std::string(argv[1]) != "--worker")
    return -1;
  try {
    workers().at(argv[2])();
    return 0;
  } catch (const std::exception &error) {
    std::cerr << "rank error: " << error.what() << std::endl;
    return 1;
  }
}

double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

int freePort() {
  const int handle = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(handle, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0 ||
      getsockname(handle, reinterpret_cast<sockaddr *>(&address), &length) != 0)
    throw std::runtime_error("no free port");
  close(handle);
  return ntohs(address.sin_port);
}

std::vector<Ended> run(const Launch &wanted) {
  Launch launch = wanted;
  if (launch.port == 0)
    launch.port = freePort();
  const auto begin = Clock::now();
  std::vector<Process> processes;
  for (int i = 0; i < launch.count; ++i)
    processes.push_back(start(launch, i));
  bool killed = false;
  while (true) {
    int running = 0;
    for (auto &process : processes) {
      readOutput(process);
      reap(process, begin);
      running += !process.reaped;
    }
    if (running == 0)
      break;
    const bool late = Clock::now() - begin > std::chrono::duration<double>(launch.seconds);
    if (!killed && (late || running <= launch.survivors)) {
      killed = true;
      for (auto &process : processes)
        if (!process.reaped)
          kill(process.pid, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::vector<Ended> all;
  for (auto &process : processes) {
    close(process.output);
    all.push_back(process.ended);
  }
  return all;
}

std::vector<Ended> runAll(const Launch &launch) {
  auto all = run(launch);
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i].exitCode, 0) << launch.worker << ", rank " << i << ":\n" << all[i].output;
  return all;
}

bool haveVirtualGpus() { return std::getenv("DEVICE_SHIM_VIRTUAL_CUDA") != nullptr; }

std::string temporaryDirectory() {
  std::string pattern = testing::TempDir() + "/device-shim-XXXXXX";
  if (!mkdtemp(pattern.data()))
    throw std::runtime_error("no temporary directory");
  static TemporaryDirectories made;
  made.paths.push_back(pattern);
  return pattern;
}

} // namespace ranks
