#include "heddle/codegen/toolchain/ptx_library.h"

#include <dlfcn.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "heddle/codegen/toolchain/tool_path.h"

namespace heddle::codegen {
namespace {

// ptxas recurses along the control flow of large kernels. Pages that it does not reach cost nothing.
constexpr size_t kStackBytes = size_t{64} << 20;
// Of nvPTXCompileResult.
constexpr int kSuccess = 0;
constexpr int kInvalidInput = 2;
constexpr int kOutOfMemory = 5;

// The functions of nvPTXCompiler.h that are called here.
struct Api {
  using Handle = void*;
  int (*version)(unsigned* major, unsigned* minor);
  int (*create)(Handle* handle, size_t ptx_bytes, const char* ptx);
  int (*destroy)(Handle* handle);
  int (*compile)(Handle handle, int count, const char* const* options);
  int (*cubin_size)(Handle handle, size_t* bytes);
  int (*cubin)(Handle handle, void* bytes);
  int (*error_log_size)(Handle handle, size_t* bytes);
  int (*error_log)(Handle handle, char* text);
  int (*info_log_size)(Handle handle, size_t* bytes);
  int (*info_log)(Handle handle, char* text);
};

StatusOr<Api> load_new(const std::string& path) {
  // Never unloaded: a thread that was left behind may be in it.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    return FailedPreconditionError(absl::StrCat("it cannot be loaded: ", why ? why : path));
  }
  Api api{};
  std::string lacks;
  const auto find = [&](const char* name, auto& function) {
    void* const symbol = dlsym(library, name);
    if (symbol == nullptr && lacks.empty()) lacks = name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  find("nvPTXCompilerGetVersion", api.version);
  find("nvPTXCompilerCreate", api.create);
  find("nvPTXCompilerDestroy", api.destroy);
  find("nvPTXCompilerCompile", api.compile);
  find("nvPTXCompilerGetCompiledProgramSize", api.cubin_size);
  find("nvPTXCompilerGetCompiledProgram", api.cubin);
  find("nvPTXCompilerGetErrorLogSize", api.error_log_size);
  find("nvPTXCompilerGetErrorLog", api.error_log);
  find("nvPTXCompilerGetInfoLogSize", api.info_log_size);
  find("nvPTXCompilerGetInfoLog", api.info_log);
  if (lacks.empty()) return api;
  return FailedPreconditionError(absl::StrCat(path, " is no PTX compiler: it lacks ", lacks));
}

// The library at a path, loaded once. What is loaded stays in the place of a file that replaces it: then there is no such library any
// more, until the program starts again.
StatusOr<Api> load(const std::string& path) {
  struct Loaded {
    FileIdentity file;
    Api api;
  };
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::map<std::string, Loaded>;
  const std::optional<FileIdentity> file = FileIdentity::of(path);
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(path); found != known.end()) {
    if (file == found->second.file) return found->second.api;
    return FailedPreconditionError(
        absl::StrCat(path, " was replaced after this program had loaded it; start it again"));
  }
  StatusOr<Api> api = load_new(path);
  if (api.ok() && file) known.emplace(path, Loaded{*file, *api});
  return api;
}

std::string version_text(const Api& api) {
  unsigned major = 0, minor = 0;
  if (api.version(&major, &minor) != kSuccess) return "";
  return absl::StrCat("libnvptxcompiler.so: PTX compiler in this process\nrelease ", major, ".",
                      minor, ", V", major, ".", minor, ".0\n");
}

// One call, shared by the caller and the thread that works for it.
struct Job {
  Api api;
  std::string ptx;
  std::vector<std::string> options;

  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  Finished finished;
};

std::string read(Api::Handle handle, int (*size)(Api::Handle, size_t*),
                 int (*get)(Api::Handle, char*)) {
  size_t bytes = 0;
  if (size(handle, &bytes) != kSuccess) return "";
  std::string text(bytes, '\0');
  if (bytes > 0 && get(handle, text.data()) != kSuccess) return "";
  // The size counts the NUL at its end.
  text.resize(strnlen(text.data(), text.size()));
  return text;
}

Finished compile(const Job& job) {
  const Api& api = job.api;
  Finished result;
  Api::Handle handle = nullptr;
  const absl::Cleanup destroy = [&] {
    if (handle != nullptr) api.destroy(&handle);
  };
  result.exit_code = api.create(&handle, job.ptx.size(), job.ptx.c_str());
  // As ptxas would say it.
  if (result.exit_code == kInvalidInput) result.standard_error = "ptxas fatal   : the PTX is empty";
  if (result.exit_code != kSuccess) return result;
  std::vector<const char*> options;
  for (const std::string& option : job.options) options.push_back(option.c_str());
  result.exit_code = api.compile(handle, static_cast<int>(options.size()), options.data());
  result.standard_error = absl::StrCat(read(handle, api.error_log_size, api.error_log), "\n",
                                       read(handle, api.info_log_size, api.info_log));
  size_t bytes = 0;
  if (result.exit_code == kSuccess) result.exit_code = api.cubin_size(handle, &bytes);
  if (result.exit_code == kSuccess) {
    result.output_file.resize(bytes);
    result.exit_code = api.cubin(handle, result.output_file.data());
  }
  return result;
}

void* work(void* argument) {
  const std::unique_ptr<std::shared_ptr<Job>> owned(static_cast<std::shared_ptr<Job>*>(argument));
  Job& job = **owned;
  fesetenv(FE_DFL_ENV);
  const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  uselocale(plain);
  Finished finished;
  try {
    finished = compile(job);
  } catch (const std::exception&) {  // of allocations
    finished.exit_code = kOutOfMemory;
  }
  uselocale(LC_GLOBAL_LOCALE);
  freelocale(plain);
  const std::lock_guard lock(job.mutex);
  job.finished = std::move(finished);
  job.done = true;
  job.ended.notify_one();
  return nullptr;
}

// Those that a fault of the thread itself raises, and a profiler's.
sigset_t signals_of_others() {
  sigset_t others;
  sigfillset(&others);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF}) {
    sigdelset(&others, own);
  }
  return others;
}

Status start(const std::shared_ptr<Job>& job) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const sigset_t blocked = signals_of_others();
  pthread_attr_setsigmask_np(&attributes, &blocked);
  auto owned = std::make_unique<std::shared_ptr<Job>>(job);
  pthread_t thread;
  const int error = pthread_create(&thread, &attributes, &work, owned.get());
  pthread_attr_destroy(&attributes);
  if (error != 0) {
    return ResourceExhaustedError(
        ErrnoToStatus(error, "a thread for the PTX compiler cannot be started").message());
  }
  owned.release();  // the thread's
  return OkStatus();
}

}  // namespace

StatusOr<Finished> run_ptx_library(const Command& command) {
  const auto began = std::chrono::steady_clock::now();
  const StatusOr<Api> api = load(command.program);
  if (!api.ok()) return api.status();
  if (absl::c_linear_search(command.arguments, "--version")) {
    Finished answer;
    answer.standard_output = version_text(*api);
    return answer;
  }
  const auto job = std::make_shared<Job>();
  job->api = *api;
  job->ptx = std::string(command.input);
  for (const std::string& argument : command.arguments) {
    // It has its input and its output as memory.
    if (argument != kInputFile && !absl::StartsWith(argument, "--output-file=")) {
      job->options.push_back(argument);
    }
  }
  if (Status started = start(job); !started.ok()) return started;
  std::unique_lock lock(job->mutex);
  job->ended.wait_for(lock, command.timeout, [&] { return job->done; });
  Finished finished;
  if (job->done) {
    finished = std::move(job->finished);
  } else {
    finished.timed_out = true;
  }
  if (finished.exit_code == kOutOfMemory) {
    return ResourceExhaustedError("the PTX compiler in this process ran out of memory");
  }
  finished.wall_time = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - began);
  return finished;
}

}  // namespace heddle::codegen
