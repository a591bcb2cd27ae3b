#include "heddle/runtime/ahead/launch_recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "heddle/codegen/environment.h"
#include "heddle/runtime/argument_facts.h"
#include "heddle/runtime/compile_option_text.h"

namespace heddle::runtime {
namespace {

constexpr char kVariable[] = "HEDDLE_RECORD";

// A list that is open to append.
class RecordFile {
 public:
  static StatusOr<std::shared_ptr<RecordFile>> open(const std::string& path) {
    // Read, too: to see whether the last line has an end.
    const int file = ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) {
      return FailedPreconditionError(absl::StrCat("launches cannot be recorded in '", path,
                                                  "': ", std::strerror(errno),
                                                  "; fix: name a file that can be written"));
    }
    auto opened = std::make_shared<RecordFile>(path, file);
    std::ifstream there(path, std::ios::binary);
    for (std::string line; std::getline(there, line);) {
      opened->ends_in_newline_ = !there.eof();
      opened->written_.insert(std::move(line));
    }
    return opened;
  }
  RecordFile(std::string path, int file) : path_(std::move(path)), file_(file) {}
  ~RecordFile() { ::close(file_); }
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  void add(const std::string& line) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (broken_ || !written_.insert(line).second) return;
    // One call, so that lines of other processes stand before or behind it.
    const std::string bytes = absl::StrCat(ends_in_newline_ ? "" : "\n", line, "\n");
    ssize_t count;
    do {
      count = ::write(file_, bytes.data(), bytes.size());
    } while (count < 0 && errno == EINTR);
    ends_in_newline_ = true;
    if (count == static_cast<ssize_t>(bytes.size())) return;
    broken_ = true;
    std::fprintf(stderr,
                 "heddle: launches are no longer recorded in '%s': %s; fix: make room there, and "
                 "delete its last line where it has no end\n",
                 path_.c_str(), count < 0 ? std::strerror(errno) : "a part of a line was written");
  }

 private:
  const std::string path_;
  const int file_;
  std::mutex mutex_;
  bool ends_in_newline_ = true;
  bool broken_ = false;
  std::set<std::string> written_;
};

// That of the process.
struct Process {
  std::mutex mutex;
  bool decided = false;  // by record_launches() or the environment
  std::shared_ptr<RecordFile> file;
};
Process& process() {
  static Process& instance = *new Process;
  return instance;
}

// nullptr where nothing is recorded.
std::shared_ptr<RecordFile> file_of_process() {
  Process& p = process();
  const std::lock_guard<std::mutex> lock(p.mutex);
  if (!p.decided) {
    p.decided = true;
    if (const std::string path = codegen::environment_variable(kVariable); !path.empty()) {
      StatusOr<std::shared_ptr<RecordFile>> file = RecordFile::open(path);
      if (file.ok()) {
        p.file = *std::move(file);
      } else {
        std::fprintf(stderr, "heddle: %s: %s\n", kVariable,
                     std::string(file.status().message()).c_str());
      }
    }
  }
  return p.file;
}

thread_local int calls_of_thread = 0;

}  // namespace

Status record_launches(const std::string& path) {
  std::shared_ptr<RecordFile> file;
  if (!path.empty()) {
    StatusOr<std::shared_ptr<RecordFile>> opened = RecordFile::open(path);
    if (!opened.ok()) return opened.status();
    file = *std::move(opened);
  }
  Process& p = process();
  const std::lock_guard<std::mutex> lock(p.mutex);
  p.decided = true;
  p.file = std::move(file);
  return OkStatus();
}

bool launches_are_recorded() { return file_of_process() != nullptr; }

void record_variant(const ir::KernelSource& source, const ir::LaunchShape& shape,
                    const ir::Target& target, const CompileOptions& options,
                    absl::Span<const Argument> arguments) {
  const std::shared_ptr<RecordFile> file = file_of_process();
  if (file == nullptr || calls_of_thread > 0) return;
  CompileOptions others = options;
  others.target.clear();
  file->add(print(KernelLine{.kernel = identity_of(source),
                             .target = std::string(target.name),
                             .block = shape.block,
                             .cluster = shape.cluster,
                             .options = print_compile_options(others),
                             .facts = all_facts(source.params(), arguments, target)}));
}

void record_call(const BoundCall& call, absl::Span<const Argument> arguments) {
  const std::shared_ptr<RecordFile> file = file_of_process();
  if (file == nullptr || call.operation == nullptr) return;
  CallLine line{call.operation->name(), call.settings, {}};
  for (size_t i = 0; i < call.values.size(); ++i) {
    const BoundCall::Value& value = call.values[i];
    if (!value.argument->is_tensor()) continue;
    const int64_t* const strides = arguments[i].strides;
    line.tensors.push_back(
        {value.argument->name, value.shape, {strides, strides + arguments[i].rank}});
  }
  file->add(print(line));
}

VariantsOfCall::VariantsOfCall() { ++calls_of_thread; }
VariantsOfCall::~VariantsOfCall() { --calls_of_thread; }

}  // namespace heddle::runtime
