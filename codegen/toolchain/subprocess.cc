#include "heddle/codegen/toolchain/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kOutputDescriptor = 3;
constexpr int kFirstFreeDescriptor = 4;
constexpr unsigned int kNoProgram = 8;  // MFD_NOEXEC_SEAL, younger than the headers of Debian 12
// What may be read of a stream in one go. A writer can be as fast as we are, so reading until there
// is nothing left might never end.
constexpr size_t kMostThatAPipeHolds = size_t{1} << 20;

template <typename Call>
auto retry_interrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class Descriptor {
 public:
  Descriptor() = default;
  // Takes over `fd`. The numbers that the child's own files get are avoided: they may be free here,
  // and a file in one of those places would be overwritten before it is passed on.
  explicit Descriptor(int fd) : fd_(fd) {
    if (fd < 0 || fd >= kFirstFreeDescriptor) return;
    fd_ = fcntl(fd, F_DUPFD_CLOEXEC, kFirstFreeDescriptor);
    const int error = errno;
    close(fd);
    errno = error;
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void reset() {
    if (valid()) close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read_end, write_end;

  static StatusOr<Pipe> open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoToStatus(errno, "cannot open a pipe");
    Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
    // Only our end: a child that writes faster than we read has to wait, not to fail.
    if (!pipe.read_end.valid() || !pipe.write_end.valid() ||
        fcntl(pipe.read_end.get(), F_SETFL, O_NONBLOCK) != 0) {
      return ErrnoToStatus(errno, "cannot set up a pipe");
    }
    return pipe;
  }
};

StatusOr<Descriptor> memory_file(const char* name, absl::string_view contents) {
  // Systems may insist that a file in memory says that it is no program; older ones do not know
  // how.
  Descriptor file(memfd_create(name, MFD_CLOEXEC | kNoProgram));
  if (!file.valid() && errno == EINVAL) file = Descriptor(memfd_create(name, MFD_CLOEXEC));
  if (!file.valid()) return ErrnoToStatus(errno, "cannot create an in-memory file");
  // Written by position, so the child starts to read at 0.
  for (size_t done = 0; done < contents.size();) {
    const ssize_t written = retry_interrupted([&] {
      return pwrite(file.get(), contents.data() + done, contents.size() - done,
                    static_cast<off_t>(done));
    });
    if (written < 0) return ErrnoToStatus(errno, "cannot write an in-memory file");
    done += static_cast<size_t>(written);
  }
  return file;
}

StatusOr<std::string> contents_of(const Descriptor& file) {
  struct stat status;
  if (fstat(file.get(), &status) != 0) return ErrnoToStatus(errno, "cannot read a result");
  std::string contents(static_cast<size_t>(status.st_size), '\0');
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t count = retry_interrupted([&] {
      return pread(file.get(), contents.data() + done, contents.size() - done,
                   static_cast<off_t>(done));
    });
    if (count < 0) return ErrnoToStatus(errno, "cannot read a result");
    if (count == 0) break;  // cut while we read
    done += static_cast<size_t>(count);
  }
  contents.resize(done);
  return contents;
}

// Keeps the first and the last bytes of a stream of any length: tools say first what is wrong and
// last how it ended.
class HeadAndTail {
 public:
  explicit HeadAndTail(size_t capacity) : half_(capacity / 2) {}

  void append(absl::string_view text) {
    const size_t to_head = std::min(text.size(), half_ - head_.size());
    head_.append(text.data(), to_head);
    text.remove_prefix(to_head);
    total_ += text.size();
    tail_.append(text.data(), text.size());
    if (tail_.size() > 2 * half_) tail_.erase(0, tail_.size() - half_);
  }

  std::string take() && {
    if (tail_.size() > half_) tail_.erase(0, tail_.size() - half_);
    if (total_ == tail_.size()) return std::move(head_) + tail_;
    // Whole lines on both sides of the gap, so that no reader takes half a line for one.
    size_t left_out = total_ - tail_.size();
    if (const size_t end = head_.rfind('\n'); end != std::string::npos) {
      left_out += head_.size() - (end + 1);
      head_.erase(end + 1);
    }
    if (const size_t end = tail_.find('\n'); end != std::string::npos) {
      left_out += end + 1;
      tail_.erase(0, end + 1);
    }
    return absl::StrFormat("%s[%d bytes left out]\n%s", head_, left_out, tail_);
  }

 private:
  size_t half_;
  size_t total_ = 0;  // bytes that did not fit the head
  std::string head_, tail_;
};

// One captured stream.
class Stream {
 public:
  Stream(Descriptor end, size_t capacity) : end_(std::move(end)), text_(capacity) {}

  int descriptor() const { return end_.get(); }  // poll() skips negative ones
  // Reads what is there.
  void drain() {
    std::array<char, 65536> buffer;
    for (size_t limit = kMostThatAPipeHolds; end_.valid() && limit > 0;) {
      const ssize_t count = retry_interrupted(
          [&] { return read(end_.get(), buffer.data(), std::min(buffer.size(), limit)); });
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) return end_.reset();
      text_.append({buffer.data(), static_cast<size_t>(count)});
      limit -= static_cast<size_t>(count);
    }
  }
  std::string take() && { return std::move(text_).take(); }

 private:
  Descriptor end_;
  HeadAndTail text_;
};

// Makes a child's end something that poll() can wait for. A thread rather than pidfd_open, which
// older kernels and sandboxes lack; it leaves the child to be reaped, so the process id (and the
// group of that number) stays ours until then.
class EndWatcher {
 public:
  static StatusOr<EndWatcher> prepare() {
    EndWatcher watcher;
    watcher.event_ = Descriptor(eventfd(0, EFD_CLOEXEC));
    if (!watcher.event_.valid()) return ErrnoToStatus(errno, "cannot create an event");
    return watcher;
  }
  EndWatcher(EndWatcher&&) = default;
  EndWatcher& operator=(EndWatcher&&) = delete;
  ~EndWatcher() {
    if (thread_.joinable()) thread_.join();
  }

  Status watch(pid_t pid) {
    // The host's signal handlers must not run on this thread.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    Status status;
    try {
      thread_ = std::thread([pid, event = event_.get()] {
        siginfo_t info;
        const int waited =
            retry_interrupted([&] { return waitid(P_PID, pid, &info, WEXITED | WNOWAIT); });
        const uint64_t news = waited == 0 ? kEnded : kLost;
        retry_interrupted([&] { return write(event, &news, sizeof(news)); });
      });
    } catch (const std::system_error& error) {
      status = ErrnoToStatus(error.code().value(), "cannot start a thread");
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return status;
  }
  int descriptor() const { return event_.get(); }
  // Once descriptor() is readable: whether the ended child is still there to be reaped.
  bool reapable() const {
    uint64_t news = kLost;
    retry_interrupted([&] { return read(event_.get(), &news, sizeof(news)); });
    return news == kEnded;
  }

 private:
  static constexpr uint64_t kEnded = 1, kLost = 2;

  EndWatcher() = default;

  Descriptor event_;
  std::thread thread_;
};

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& string : strings) result.push_back(const_cast<char*>(string.c_str()));
  result.push_back(nullptr);
  return result;
}

struct ChildFiles {
  const Descriptor &input, &output, &standard_output, &standard_error;
};

StatusOr<pid_t> spawn(const Command& command, const ChildFiles& files) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, files.input.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, files.standard_output.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, files.standard_error.get(), 2);
  if (files.output.valid()) {
    posix_spawn_file_actions_adddup2(&actions, files.output.get(), kOutputDescriptor);
  }
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
  // What the host program opened without O_CLOEXEC is none of the child's business.
  posix_spawn_file_actions_addclosefrom_np(
      &actions, files.output.valid() ? kFirstFreeDescriptor : kOutputDescriptor);
#endif

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  for (int signal : {SIGPIPE, SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGCHLD, SIGXFSZ}) {
    sigaddset(&signals, signal);
  }
  posix_spawnattr_setsigdefault(&attributes, &signals);

  std::vector<std::string> arguments = {command.program};
  arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
  pid_t pid = 0;
  const int error = posix_spawn(&pid, command.program.c_str(), &actions, &attributes,
                                pointers(arguments).data(), pointers(command.environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return ErrnoToStatus(error, absl::StrCat("cannot start ", command.program));
  }
  return pid;
}

// Set a moment after the start: they bound a runaway, they are not a sandbox. A refusal changes
// nothing, since the program would have been run without limits too.
void limit(pid_t pid, const Command& command) {
  const auto set = [pid](auto resource, uint64_t wanted) {
    rlimit bounds;
    if (prlimit(pid, resource, nullptr, &bounds) != 0) return;
    bounds.rlim_max = std::min<rlim_t>(bounds.rlim_max, wanted);
    bounds.rlim_cur = std::min<rlim_t>(bounds.rlim_cur, bounds.rlim_max);
    prlimit(pid, resource, &bounds, nullptr);
  };
  set(RLIMIT_CORE, 0);
  set(RLIMIT_FSIZE, command.max_file_bytes);
  if (command.max_memory_bytes.has_value()) set(RLIMIT_AS, *command.max_memory_bytes);
}

// Drains both streams until the child has ended; returns whether its time ran out.
bool attend(pid_t pid, const Command& command, Clock::time_point start, int end_event, Stream& out,
            Stream& err) {
  bool timed_out = false, killed = false;
  Clock::time_point deadline = start + command.timeout;
  while (true) {
    int wait_ms = -1;
    if (!killed) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
      wait_ms = static_cast<int>(std::clamp<int64_t>(left, 0, INT32_MAX));
    }
    std::array<pollfd, 3> files = {
        {{out.descriptor(), POLLIN, 0}, {err.descriptor(), POLLIN, 0}, {end_event, POLLIN, 0}}};
    const int ready = poll(files.data(), files.size(), wait_ms);
    if (ready > 0) {
      if (files[0].revents != 0) out.drain();
      if (files[1].revents != 0) err.drain();
      if (files[2].revents != 0) return timed_out;
    }
    if (!killed && Clock::now() >= deadline) {
      kill(-pid, timed_out ? SIGKILL : SIGTERM);
      killed = timed_out;
      timed_out = true;
      deadline += command.grace;
    }
  }
}

Status check(const Command& command) {
  if (command.program.empty() || command.program[0] != '/') {
    return InvalidArgumentError(
        absl::StrCat("a program is run by its absolute path, not as '", command.program, "'"));
  }
  const auto has_nul = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  if (has_nul(command.program) ||
      std::any_of(command.arguments.begin(), command.arguments.end(), has_nul)) {
    return InvalidArgumentError("a program's path and arguments cannot hold a NUL byte");
  }
  return OkStatus();
}

}  // namespace

StatusOr<Finished> run_command(const Command& command) {
  if (Status status = check(command); !status.ok()) return status;
  StatusOr<Descriptor> input = memory_file("input", command.input);
  if (!input.ok()) return input.status();
  Descriptor output;
  if (command.wants_output_file) {
    StatusOr<Descriptor> file = memory_file("output", "");
    if (!file.ok()) return file.status();
    output = *std::move(file);
  }
  StatusOr<Pipe> out = Pipe::open();
  if (!out.ok()) return out.status();
  StatusOr<Pipe> err = Pipe::open();
  if (!err.ok()) return err.status();
  StatusOr<EndWatcher> watcher = EndWatcher::prepare();
  if (!watcher.ok()) return watcher.status();

  const Clock::time_point start = Clock::now();
  const StatusOr<pid_t> pid = spawn(command, {*input, output, out->write_end, err->write_end});
  if (!pid.ok()) return pid.status();
  limit(*pid, command);
  out->write_end.reset();
  err->write_end.reset();

  Finished finished;
  Stream out_stream(std::move(out->read_end), command.max_captured);
  Stream err_stream(std::move(err->read_end), command.max_captured);
  const Status watching = watcher->watch(*pid);
  if (watching.ok()) {
    finished.timed_out =
        attend(*pid, command, start, watcher->descriptor(), out_stream, err_stream);
  }
  // Not yet reaped, so the group's number cannot have gone to somebody else.
  const bool ours = !watching.ok() || watcher->reapable();
  if (ours) kill(-*pid, SIGKILL);
  // All that the child itself wrote is in the pipes.
  out_stream.drain();
  err_stream.drain();

  int status = 0;
  if (!ours || retry_interrupted([&] { return waitpid(*pid, &status, 0); }) < 0) {
    return InternalError(absl::StrCat(
        "the exit status of ", command.program,
        " is lost because the host program ignores SIGCHLD or waits for children that are not its "
        "own"));
  }
  finished.wall_time = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
  if (!watching.ok()) return watching;
  if (WIFSIGNALED(status)) finished.signal = WTERMSIG(status);
  if (WIFEXITED(status)) finished.exit_code = WEXITSTATUS(status);
  finished.standard_output = std::move(out_stream).take();
  finished.standard_error = std::move(err_stream).take();
  if (output.valid()) {
    StatusOr<std::string> contents = contents_of(output);
    if (!contents.ok()) return contents.status();
    finished.output_file = *std::move(contents);
  }
  return finished;
}

std::string describe_end(const Finished& finished, milliseconds timeout) {
  if (finished.timed_out) {
    return absl::StrCat("did not end within ", static_cast<double>(timeout.count()) / 1000, " s");
  }
  if (finished.signal != 0) {
    const char* name = sigabbrev_np(finished.signal);
    return name != nullptr ? absl::StrCat("was killed by SIG", name)
                           : absl::StrCat("was killed by signal ", finished.signal);
  }
  return absl::StrCat("ended with exit code ", finished.exit_code);
}

}  // namespace heddle::codegen
