// A disk that becomes full, for tests.
#pragma once

#include <csignal>
#include <sys/resource.h>

// While one lives, no file of this process grows beyond `bytes`: to a program as if the disk were full.
class SmallDisk {
public:
  explicit SmallDisk(rlim_t bytes) : before(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &limit);
    rlimit small = limit;
    small.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallDisk() {
    setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, before);
  }

private:
  rlimit limit{};
  void (*before)(int);
};
