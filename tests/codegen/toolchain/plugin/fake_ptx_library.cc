// A stand-in for NVIDIA's PTX compiler as a library. What it does the PTX says: see kActs.
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

namespace {

struct Call {
  std::string ptx, log;
  size_t cubin_bytes = 0;
};

struct Act {
  const char* word;
  int (*run)(Call& call);
};

int hang(Call&) {
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  return 0;
}
int fail_silently(Call&) { return 4; }
int run_out_of_memory(Call&) { return 5; }
int succeed(Call&) { return 0; }
int make_too_much(Call& call) {
  call.cubin_bytes = SIZE_MAX;
  return 0;
}
// How it finds the thread that it is called in.
int tell(Call& call) {
  pthread_attr_t attributes;
  size_t stack = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstacksize(&attributes, &stack);
    pthread_attr_destroy(&attributes);
  }
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  call.log = "ptxas warning : rounding is " + std::to_string(fegetround() == FE_TONEAREST) +
             ", stack of " + std::to_string(stack >> 20) + " MiB, SIGTERM blocked " +
             std::to_string(sigismember(&blocked, SIGTERM)) + ", SIGSEGV blocked " +
             std::to_string(sigismember(&blocked, SIGSEGV)) + ", the program's locale " +
             std::to_string(uselocale(locale_t{}) == LC_GLOBAL_LOCALE) + "\n";
  return 0;
}

constexpr Act kActs[] = {{"hang", &hang}, {"fail", &fail_silently}, {"memory", &run_out_of_memory},
                         {"tell", &tell}, {"huge", &make_too_much}, {"", &succeed}};

}  // namespace

extern "C" {

int nvPTXCompilerGetVersion(unsigned* major, unsigned* minor) {
  *major = HEDDLE_FAKE_MAJOR;
  *minor = HEDDLE_FAKE_MINOR;
  return 0;
}
int nvPTXCompilerCreate(void** handle, size_t bytes, const char* ptx) {
  *handle = new Call{std::string(ptx, bytes), ""};
  return 0;
}
int nvPTXCompilerDestroy(void** handle) {
  delete static_cast<Call*>(*handle);
  return 0;
}
int nvPTXCompilerCompile(void* handle, int, const char* const*) {
  Call& call = *static_cast<Call*>(handle);
  for (const Act& act : kActs) {
    if (call.ptx.find(act.word) != std::string::npos) return act.run(call);
  }
  return 0;
}
int nvPTXCompilerGetCompiledProgramSize(void* handle, size_t* bytes) {
  *bytes = static_cast<Call*>(handle)->cubin_bytes;
  return 0;
}
int nvPTXCompilerGetCompiledProgram(void*, void*) { return 0; }
int nvPTXCompilerGetErrorLogSize(void*, size_t* bytes) {
  *bytes = 0;
  return 0;
}
int nvPTXCompilerGetErrorLog(void*, char*) { return 0; }
int nvPTXCompilerGetInfoLogSize(void* handle, size_t* bytes) {
  *bytes = static_cast<Call*>(handle)->log.size();
  return 0;
}
int nvPTXCompilerGetInfoLog(void* handle, char* text) {
  const std::string& log = static_cast<Call*>(handle)->log;
  std::memcpy(text, log.data(), log.size());
  return 0;
}

}  // extern "C"
