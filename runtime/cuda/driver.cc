#include "heddle/runtime/cuda/driver.h"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "heddle/runtime/cuda/errors.h"

namespace heddle::runtime::cuda {
namespace {

constexpr char kDefaultLibrary[] = "libcuda.so.1";

template <class Signature>
bool resolve(void* library, DriverFunction<Signature>& function) {
  function.entry = reinterpret_cast<decltype(function.entry)>(dlsym(library, function.symbol));
  return function.entry != nullptr;
}

}  // namespace

std::string version_text(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

StatusOr<const Driver*> Driver::get() {
  const char* chosen = std::getenv("HEDDLE_CUDA_LIBRARY");
  const std::string library = chosen != nullptr && *chosen != '\0' ? chosen : kDefaultLibrary;

  // By name, for a process may look at two libraries (tests do). Never destroyed: handles that a
  // program leaves behind are released after main.
  static std::mutex& mutex = *new std::mutex;
  static auto& loaded = *new std::map<std::string, const Driver*>;
  std::lock_guard<std::mutex> lock(mutex);
  if (const auto found = loaded.find(library); found != loaded.end()) return found->second;
  StatusOr<const Driver*> driver = load(library);
  if (driver.ok()) loaded.emplace(library, *driver);
  return driver;
}

StatusOr<const Driver*> Driver::load(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* error = dlerror();
    // The loader's text repeats the name; only a failure other than absence is worth quoting.
    if (error == nullptr || absl::StrContains(error, "No such file")) {
      return NotFoundError(absl::StrCat(library,
                                        " not found; fix: install NVIDIA's driver, or name its "
                                        "library in HEDDLE_CUDA_LIBRARY; ",
                                        kStillWorks));
    }
    return FailedPreconditionError(
        absl::StrCat(library, " cannot be loaded (", error, "); ", kStillWorks));
  }

  std::unique_ptr<Driver> driver(new Driver);
  driver->library_ = library;
  DriverApi& api = driver->api_;
  const char* missing = nullptr;
#define HEDDLE_RESOLVE(member, symbol, signature) \
  if (!resolve(handle, api.member) && missing == nullptr) missing = symbol;
  HEDDLE_CUDA_FUNCTIONS(HEDDLE_RESOLVE)
#undef HEDDLE_RESOLVE

  // An old driver also lacks symbols; its version is the better thing to say.
  if (api.driver_get_version.entry != nullptr) {
    const Result result = api.driver_get_version(&driver->version_);
    if (result != Result::kSuccess) {
      dlclose(handle);
      return FailedPreconditionError(
          absl::StrCat(library, " does not say its version; ", kStillWorks));
    }
  }
  if (driver->version_ != 0 && driver->version_ < kOldestVersion) {
    dlclose(handle);
    return FailedPreconditionError(absl::StrCat(
        "the driver ", library, " speaks CUDA ", version_text(driver->version_),
        ", and Heddle needs ", version_text(kOldestVersion),
        " or newer; fix: update the NVIDIA driver to 525 or newer; until then ", kStillWorks));
  }
  if (missing != nullptr) {
    dlclose(handle);
    return FailedPreconditionError(absl::StrCat(library, " lacks ", missing, "; ", kStillWorks));
  }

  // From here on the library stays loaded: it may have started threads.
  const Result result = api.init(0);
  if (result != Result::kSuccess) {
    const std::string hint = absl::StrCat(error_info(result).hint, "; ", kStillWorks);
    return driver_error(api, result, {.call = api.init.symbol, .hint = hint});
  }
  return driver.release();
}

}  // namespace heddle::runtime::cuda
