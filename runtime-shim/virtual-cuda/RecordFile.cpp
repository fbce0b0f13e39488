#include "RecordFile.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>

namespace vcuda {
namespace {

constexpr size_t kBufferBytes = size_t{64} << 10;
constexpr size_t kLongestLine = (size_t{1} << 20) - 1;

// RANK if it is a number, else 0.
std::string rank() {
  const char *text = std::getenv("RANK");
  if (!text || !*text || std::strspn(text, "0123456789") != std::strlen(text))
    return "0";
  return text;
}

} // namespace

bool RecordFile::open() {
  if (file_ >= 0 || failed_)
    return file_ >= 0;
  std::string path =
      std::string(directory_) + "/" + kind_ + "-" + rank() + "-" + std::to_string(getpid()) + ".jsonl";
  file_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) {
    failed_ = true;
    std::cerr << "virtual-cuda: cannot write " << path << ": " << std::strerror(errno)
              << "; nothing is recorded there\n";
  }
  return file_ >= 0;
}

void RecordFile::writeOut(const std::string &text) {
  if (text.empty() || !open())
    return;
  ssize_t written = 0;
  do {
    written = ::write(file_, text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(text.size()))
    return;
  failed_ = true;
  ::close(file_);
  file_ = -1;
  std::cerr << "virtual-cuda: writing to " << directory_ << " failed: " << std::strerror(errno)
            << "; no more " << kind_ << " records follow\n";
}

void RecordFile::write(std::string line) {
  if (line.size() > kLongestLine)
    return;
  line += '\n';
  std::lock_guard<std::mutex> lock(mutex_);
  writeOut(line);
}

void RecordFile::add(std::string line) {
  if (line.size() > kLongestLine)
    return;
  line += '\n';
  std::lock_guard<std::mutex> lock(mutex_);
  buffer_ += line;
  if (buffer_.size() < kBufferBytes)
    return;
  writeOut(buffer_);
  buffer_.clear();
}

void RecordFile::flush() {
  std::lock_guard<std::mutex> lock(mutex_);
  writeOut(buffer_);
  buffer_.clear();
}

void RecordFile::beforeFork() {
  mutex_.lock();
  writeOut(buffer_);
  buffer_.clear();
}

void RecordFile::afterForkInParent() { mutex_.unlock(); }

void RecordFile::afterForkInChild() {
  if (file_ >= 0)
    ::close(file_);
  file_ = -1;
  mutex_.unlock();
}

} // namespace vcuda
