// The CUDA driver library, loaded when the first GPU is asked for.
//
//   StatusOr<const Driver*> driver = Driver::get();
//   if (!driver.ok()) return driver.status();       // says that the interpreter still works
//   (*driver)->api().device_get_count(&count);
#pragma once

#include <string>

#include "heddle/ir/status.h"
#include "heddle/runtime/cuda/driver_api.h"

namespace heddle::runtime::cuda {

class Driver {
 public:
  // The oldest driver that has every function of the table (cuTensorMapEncodeTiled came with 12.0), as
  // 1000 × major + 10 × minor.
  static constexpr int kOldestVersion = 12000;

  // The library named by HEDDLE_CUDA_LIBRARY, else libcuda.so.1; loaded and initialised once, and
  // never unloaded. kNotFound without a library or a GPU, kFailedPrecondition for one that is too
  // old or unusable. A failure is not remembered: the next call tries again.
  static StatusOr<const Driver*> get();

  const DriverApi& api() const { return api_; }
  int version() const { return version_; }
  const std::string& library() const { return library_; }

 private:
  Driver() = default;
  static StatusOr<const Driver*> load(const std::string& library);

  DriverApi api_;
  int version_ = 0;
  std::string library_;
};

// What to say where no GPU can be had.
inline constexpr char kStillWorks[] = "the interpreter still works: Device::open(\"interp\")";

// "13.0" for 13000.
std::string version_text(int version);

}  // namespace heddle::runtime::cuda
