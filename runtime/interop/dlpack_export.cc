// Heddle's buffers as tensors of other libraries.
#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/interop/dlpack.h"
#include "heddle/runtime/interop/dlpack_abi_internal.h"
#include "heddle/runtime/interop/dlpack_types_internal.h"

namespace heddle::runtime {
namespace {

// What the deleter gives back.
template <class Managed>
struct Exported {
  Managed managed{};
  std::shared_ptr<Buffer> buffer;
  std::vector<int64_t> extents, strides;

  static void destroy(Managed* managed) { delete static_cast<Exported*>(managed->manager_ctx); }
};

// What is the same in both forms.
struct Checked {
  DLTensor tensor{};
  std::vector<int64_t> strides;
};

Status check_within(const Buffer& buffer, const DlpackLayout& layout,
                    absl::Span<const int64_t> strides, bool& empty) {
  const int bytes = ir::bytes_of(layout.dtype);
  const std::string what = absl::StrCat(
      "a tensor ", name_of(layout.dtype), "[", absl::StrJoin(layout.extents, ", "),
      "] with strides (", absl::StrJoin(strides, ", "), ") at byte ", layout.byte_offset);
  for (size_t mode = 0; mode < layout.extents.size(); ++mode) {
    if (layout.extents[mode] < 0) {
      return InvalidArgumentError(absl::StrCat(what, " has a negative extent"));
    }
  }
  empty = std::find(layout.extents.begin(), layout.extents.end(), 0) != layout.extents.end();
  if (empty) return OkStatus();
  if (layout.byte_offset % static_cast<size_t>(bytes) != 0) {
    return InvalidArgumentError(
        absl::StrCat(what, " is not aligned to its elements of ", ir::counted(bytes, "byte")));
  }
  // As if the buffer lay at address 2^62: what wraps ends below it.
  constexpr uint64_t kBase = uint64_t{1} << 62;
  Argument range{.bits = kBase + layout.byte_offset,
                 .extents = layout.extents.data(),
                 .strides = strides.data(),
                 .rank = static_cast<int>(strides.size())};
  measure_tensor(range, bytes);
  if (range.begin < kBase || range.end > kBase + buffer.size_bytes()) {
    return OutOfRangeError(
        absl::StrCat(what, " does not lie in a buffer of ",
                     ir::counted(static_cast<int64_t>(buffer.size_bytes()), "byte")));
  }
  return OkStatus();
}

StatusOr<DLDevice> device_of(const Buffer& buffer, bool empty) {
  const std::shared_ptr<Backend>& backend = buffer.backend();
  switch (backend->kind()) {
    case BackendKind::kCuda: {
      DLDevice device{dlpack::kCuda, 0};
      if (!absl::SimpleAtoi(absl::StripPrefix(backend->name(), "cuda:"), &device.device_id)) {
        return InternalError(absl::StrCat("'", backend->name(), "' has no number"));
      }
      return device;
    }
    case BackendKind::kInterp: {
      // Who reads it sees no error of unwritten bytes, and what others write the interpreter does not see.
      const Status written = empty ? OkStatus()
                                   : backend->check_written(buffer.address(), buffer.size_bytes(),
                                                            /*element_bytes=*/1, /*padded=*/false);
      if (!written.ok()) {
        return FailedPreconditionError(
            absl::StrCat("the buffer cannot be given to another library yet: ", written.message(),
                         "; fix: write all of it, as Buffer::fill() does"));
      }
      return DLDevice{dlpack::kCpu, 0};
    }
    case BackendKind::kDryRun:
      break;
  }
  return InvalidArgumentError(absl::StrCat(backend->name(), " has no memory to share"));
}

StatusOr<Checked> check(const Buffer* buffer, const DlpackLayout& layout) {
  if (buffer == nullptr) return InvalidArgumentError("to_dlpack() was given no buffer");
  if (buffer->backend() == nullptr) {
    return InvalidArgumentError(
        "to_dlpack() was given a buffer that belongs to no device: one that was made by default, "
        "or "
        "moved from");
  }
  if (layout.dtype == DType::kNone) {
    return InvalidArgumentError("to_dlpack() was given no element type; fix: set .dtype");
  }
  Checked checked;
  checked.strides = layout.strides.empty() ? dlpack::row_major(layout.extents) : layout.strides;
  if (checked.strides.size() != layout.extents.size()) {
    return InvalidArgumentError(absl::StrCat("to_dlpack() was given ", layout.extents.size(),
                                             " extents and ", layout.strides.size(), " strides"));
  }
  bool empty = false;
  if (Status s = check_within(*buffer, layout, checked.strides, empty); !s.ok()) return s;
  const StatusOr<DLDevice> device = device_of(*buffer, empty);
  if (!device.ok()) return device.status();
  checked.tensor.device = *device;
  checked.tensor.dtype = dlpack::type_of(layout.dtype);
  checked.tensor.ndim = static_cast<int32_t>(layout.extents.size());
  // Many consumers take byte_offset for 0.
  if (!empty) checked.tensor.data = reinterpret_cast<void*>(buffer->address() + layout.byte_offset);
  return checked;
}

template <class Managed>
Managed* finish(std::shared_ptr<Buffer> buffer, const DlpackLayout& layout, Checked checked) {
  auto* made = new Exported<Managed>;
  made->buffer = std::move(buffer);
  made->extents = layout.extents;
  made->strides = std::move(checked.strides);
  DLTensor& tensor = made->managed.dl_tensor;
  tensor = checked.tensor;
  tensor.shape = made->extents.data();
  tensor.strides = made->strides.data();
  made->managed.manager_ctx = made;
  made->managed.deleter = &Exported<Managed>::destroy;
  return &made->managed;
}

DLManagedTensorVersioned* versioned(std::shared_ptr<Buffer> buffer, const DlpackLayout& layout,
                                    Checked checked) {
  auto* made = finish<DLManagedTensorVersioned>(std::move(buffer), layout, std::move(checked));
  made->version = {dlpack::kMajor, dlpack::kMinor};
  made->flags = layout.read_only ? dlpack::kReadOnly : 0;
  return made;
}

StatusOr<Checked> check_legacy(const Buffer* buffer, const DlpackLayout& layout) {
  if (layout.read_only) {
    return InvalidArgumentError(
        "DLPack before version 1 cannot say that a tensor is read-only; fix: take to_dlpack(), or "
        "leave "
        ".read_only out");
  }
  return check(buffer, layout);
}

std::shared_ptr<Buffer> shared(Buffer&& buffer) {
  return std::make_shared<Buffer>(std::move(buffer));
}

}  // namespace

StatusOr<DLManagedTensorVersioned*> to_dlpack(std::shared_ptr<Buffer> buffer,
                                              const DlpackLayout& layout) {
  StatusOr<Checked> checked = check(buffer.get(), layout);
  if (!checked.ok()) return checked.status();
  return versioned(std::move(buffer), layout, *std::move(checked));
}

StatusOr<DLManagedTensorVersioned*> to_dlpack(Buffer&& buffer, const DlpackLayout& layout) {
  StatusOr<Checked> checked = check(&buffer, layout);
  if (!checked.ok()) return checked.status();
  return versioned(shared(std::move(buffer)), layout, *std::move(checked));
}

StatusOr<DLManagedTensor*> to_legacy_dlpack(std::shared_ptr<Buffer> buffer,
                                            const DlpackLayout& layout) {
  StatusOr<Checked> checked = check_legacy(buffer.get(), layout);
  if (!checked.ok()) return checked.status();
  return finish<DLManagedTensor>(std::move(buffer), layout, *std::move(checked));
}

StatusOr<DLManagedTensor*> to_legacy_dlpack(Buffer&& buffer, const DlpackLayout& layout) {
  StatusOr<Checked> checked = check_legacy(&buffer, layout);
  if (!checked.ok()) return checked.status();
  return finish<DLManagedTensor>(shared(std::move(buffer)), layout, *std::move(checked));
}

}  // namespace heddle::runtime
