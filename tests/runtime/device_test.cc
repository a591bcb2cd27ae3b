// What every device does, on whichever one the tests run.
#include "heddle/runtime/device.h"

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/test_device.h"

namespace heddle::runtime {
namespace {

using testing::HasSubstr;

TEST(DeviceTest, RefusesNamesThatAreNoDevice) {
  for (const char* name : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:99999",
                           "interp:", "interp0", "cuda:0 ", "CUDA:0"}) {
    const StatusOr<Device> device = Device::open(name);
    EXPECT_EQ(device.status().code(), StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(device.status().message(),
              absl::StrCat("'", name,
                           "' names no device; say \"cuda:0\" (or another number) or "
                           "\"interp\""));
  }
}

TEST(DeviceTest, DescribesItself) {
  const Device& device = test_device();
  EXPECT_EQ(device.name(), test_device_name());
  EXPECT_FALSE(device.info().name.empty());
  EXPECT_EQ(device.info().warp_size, 32);
  EXPECT_GE(device.info().compute_major, 7);
  EXPECT_GT(device.info().sm_count, 0);
  EXPECT_GE(device.info().limits.max_threads_per_block, 1024);
  EXPECT_GE(device.info().limits.max_shared_per_block, 48 * 1024);
  EXPECT_GT(device.info().l2_bytes, 0);
  EXPECT_EQ(device.cuda() != nullptr, on_gpu());
  EXPECT_EQ(device.interp() != nullptr, !on_gpu());
  EXPECT_TRUE(device.health().ok());
}

TEST(DeviceTest, OpensTheSameDeviceAgain) {
  EXPECT_EQ(Device::open(test_device_name()).value(), test_device());
}

TEST(DeviceTest, CopiesThereAndBack) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  std::vector<int> values(1000);
  std::iota(values.begin(), values.end(), 7);
  Buffer first = device.allocate(values.size() * sizeof(int)).value();
  Buffer second = device.allocate(first.size_bytes()).value();
  EXPECT_EQ(first.address() % 256, 0u);
  ASSERT_TRUE(first.copy_from_host(stream, values.data(), first.size_bytes()).ok());
  ASSERT_TRUE(second.copy_from(stream, first, first.size_bytes()).ok());
  EXPECT_EQ(second.download<int>(stream).value(), values);
}

TEST(DeviceTest, CopiesAtOffsets) {
  const Device& device = test_device();
  const Stream stream = device.default_stream();
  Buffer from = device.upload<uint8_t>({0, 1, 2, 3, 4, 5, 6, 7}).value();
  Buffer to = device.upload<uint8_t>({9, 9, 9, 9, 9, 9, 9, 9}).value();
  ASSERT_TRUE(to.copy_from(stream, from, 3, /*offset=*/2, /*from_offset=*/5).ok());
  const uint8_t byte = 42;
  ASSERT_TRUE(to.copy_from_host(stream, &byte, 1, /*offset=*/7).ok());
  EXPECT_EQ(to.download<uint8_t>(stream).value(), (std::vector<uint8_t>{9, 9, 5, 6, 7, 9, 9, 42}));
  uint8_t part[2] = {};
  ASSERT_TRUE(to.copy_to_host(stream, part, 2, /*offset=*/3).ok());
  ASSERT_TRUE(stream.synchronize().ok());
  EXPECT_EQ(part[0], 6);
  EXPECT_EQ(part[1], 7);
  // Within one buffer too, as long as the ranges are apart.
  ASSERT_TRUE(to.copy_from(stream, to, 2, /*offset=*/0, /*from_offset=*/6).ok());
  EXPECT_EQ(to.download<uint8_t>(stream).value(), (std::vector<uint8_t>{9, 42, 5, 6, 7, 9, 9, 42}));
}

TEST(DeviceTest, Fills) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  Buffer buffer = device.allocate(16).value();
  ASSERT_TRUE(buffer.fill(stream, 0xAB).ok());
  ASSERT_TRUE(buffer.fill32(stream, 0x01020304, 2, /*offset=*/4).ok());
  ASSERT_TRUE(buffer.fill8(stream, 0, 1, /*offset=*/15).ok());
  EXPECT_EQ(buffer.download<uint32_t>(stream).value(),
            (std::vector<uint32_t>{0xABABABAB, 0x01020304, 0x01020304, 0x00ABABAB}));
}

TEST(DeviceTest, ChecksRangesOfBuffers) {
  const Device& device = test_device();
  const Stream stream = device.default_stream();
  Buffer buffer = device.allocate(64).value();
  char host[128] = {};
  const Status past = buffer.copy_from_host(stream, host, 65);
  EXPECT_EQ(past.code(), StatusCode::kOutOfRange);
  EXPECT_EQ(past.message(), "bytes 0 to 0 + 65 do not lie in a buffer of 64 bytes");
  EXPECT_EQ(buffer.copy_to_host(stream, host, 1, 64).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(buffer.copy_to_host(stream, host, SIZE_MAX, 2).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(buffer.fill8(stream, 0, 2, 63).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(buffer.fill32(stream, 0, SIZE_MAX / 2).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(buffer.fill32(stream, 0, 16, 4).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(buffer.fill32(stream, 0, 1, 2).message(),
            "a fill with words of 4 bytes cannot start at byte 2");
  EXPECT_EQ(buffer.copy_from_host(stream, nullptr, 4).message(),
            "copy to the device: the host pointer is null");
  EXPECT_EQ(buffer.copy_to_host(stream, nullptr, 4).message(),
            "copy to the host: the host pointer is null");
  EXPECT_THAT(buffer.copy_from(stream, buffer, 32, 16, 0).message(),
              HasSubstr("source and destination of 32 bytes overlap, they are 16 bytes apart"));
  Buffer odd = device.allocate(6).value();
  EXPECT_EQ(odd.download<int>(stream).status().message(),
            "a buffer of 6 bytes is no whole number of 4-byte values");
}

TEST(DeviceTest, EmptyBuffersAreNothingToDo) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  Buffer empty = device.allocate(0).value();
  EXPECT_EQ(empty.size_bytes(), 0u);
  EXPECT_EQ(empty.address(), 0u);
  EXPECT_TRUE(empty.copy_from_host(stream, nullptr, 0).ok());
  EXPECT_TRUE(empty.fill(stream, 1).ok());
  EXPECT_TRUE(empty.download<float>(stream).value().empty());
  EXPECT_TRUE(device.upload(absl::Span<const float>()).value().download<float>(stream)->empty());
  Buffer nobodys;
  EXPECT_TRUE(nobodys.fill(stream, 1).ok());
  EXPECT_EQ(device.allocate_pinned(0).value().data(), nullptr);
}

TEST(DeviceTest, MovesOwnership) {
  const Device& device = test_device();
  const uint64_t before = device.memory_usage().value().free_bytes;
  Buffer a = device.allocate(8 << 20).value();
  const DeviceAddress address = a.address();
  Buffer b = std::move(a);
  EXPECT_EQ(b.address(), address);
  EXPECT_EQ(a.address(), 0u);  // NOLINT: the moved-from state is what is tested
  EXPECT_EQ(a.size_bytes(), 0u);
  b = device.allocate(4).value();
  b = Buffer();
  // A driver keeps some for itself.
  EXPECT_GE(device.memory_usage().value().free_bytes + (4 << 20), before);

  Stream stream = device.create_stream().value();
  Stream moved = std::move(stream);
  stream = device.create_stream().value();
  EXPECT_NE(stream.handle(), moved.handle());
  EXPECT_TRUE(moved.synchronize().ok());
  Event event = device.create_event().value();
  ASSERT_TRUE(event.record(moved).ok());
  Event other = device.create_event().value();
  other = std::move(event);
  EXPECT_TRUE(Event::elapsed_ms(other, other).ok()) << "a moved event stays recorded";
  PinnedBuffer pinned = device.allocate_pinned(10).value();
  PinnedBuffer taken = device.allocate_pinned(20).value();
  taken = std::move(pinned);
  EXPECT_EQ(taken.size_bytes(), 10u);
}

TEST(DeviceTest, HandlesKeepTheDeviceOpen) {
  std::vector<int> values = {1, 2, 3};
  StatusOr<Device> device = Device::open(test_device_name());
  ASSERT_TRUE(device.ok());
  Stream stream = device->create_stream().value();
  Buffer buffer = device->upload<int>(values).value();
  device = UnknownError("gone");
  EXPECT_EQ(buffer.download<int>(stream).value(), values);
}

TEST(DeviceTest, EventsMeasureTime) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  Event start = device.create_event().value();
  Event stop = device.create_event().value();
  EXPECT_TRUE(start.done().value());
  EXPECT_TRUE(start.synchronize().ok());
  const StatusOr<double> unrecorded = Event::elapsed_ms(start, stop);
  EXPECT_EQ(unrecorded.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(unrecorded.status().message(),
            absl::StrCat("no time between two events on ", device.name(),
                         ": the first was never recorded on a stream"));
  ASSERT_TRUE(start.record(stream).ok());
  EXPECT_THAT(Event::elapsed_ms(start, stop).status().message(), HasSubstr("the second was never"));
  Buffer buffer = device.allocate(1 << 20).value();
  ASSERT_TRUE(buffer.fill(stream, 3).ok());
  ASSERT_TRUE(stop.record(stream).ok());
  ASSERT_TRUE(stop.synchronize().ok());
  EXPECT_TRUE(stop.done().value());
  EXPECT_GT(Event::elapsed_ms(start, stop).value(), 0.0);
  EXPECT_LT(Event::elapsed_ms(stop, start).value(), 0.0);
}

TEST(DeviceTest, StreamsWaitForEvents) {
  const Device& device = test_device();
  const Stream producer = device.create_stream().value();
  const Stream consumer = device.create_stream().value();
  Buffer x = device.allocate(4 << 20).value();
  Buffer y = device.allocate(4 << 20).value();
  ASSERT_TRUE(y.fill(producer, 0).ok());
  ASSERT_TRUE(x.fill(producer, 7).ok());
  Event ready = device.create_event().value();
  ASSERT_TRUE(ready.record(producer).ok());
  ASSERT_TRUE(consumer.wait(ready).ok());
  ASSERT_TRUE(y.copy_from(consumer, x, x.size_bytes()).ok());
  const std::vector<uint8_t> result = y.download<uint8_t>(consumer).value();
  EXPECT_EQ(result, std::vector<uint8_t>(4 << 20, 7));
  EXPECT_TRUE(consumer.done().value());
  EXPECT_TRUE(device.synchronize().ok());
}

TEST(DeviceTest, PinnedMemoryHoldsData) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  PinnedBuffer in = device.allocate_pinned(1 << 16).value();
  PinnedBuffer out = device.allocate_pinned(1 << 16).value();
  std::memset(in.data(), 0x5A, in.size_bytes());
  Buffer buffer = device.allocate(in.size_bytes()).value();
  ASSERT_TRUE(buffer.copy_from_host(stream, in.data(), in.size_bytes()).ok());
  ASSERT_TRUE(buffer.copy_to_host(stream, out.data(), out.size_bytes()).ok());
  ASSERT_TRUE(stream.synchronize().ok());
  EXPECT_EQ(std::memcmp(in.data(), out.data(), in.size_bytes()), 0);
}

TEST(DeviceTest, BorrowedStreamsAreNotFreed) {
  const Device& device = test_device();
  const Stream owner = device.create_stream().value();
  { const Stream guest = device.borrow_stream(owner.handle()); }
  Buffer buffer = device.allocate(4).value();
  EXPECT_TRUE(buffer.fill(owner, 1).ok());
  EXPECT_TRUE(owner.synchronize().ok());
}

TEST(DeviceTest, SaysWhenMemoryDoesNotSuffice) {
  const Device& device = test_device();
  const uint64_t total = device.memory_usage().value().total_bytes;
  const StatusOr<Buffer> buffer = device.allocate(total + 1);
  EXPECT_EQ(buffer.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(buffer.status().message()), HasSubstr(absl::StrCat(total + 1, " bytes")));
  EXPECT_THAT(std::string(buffer.status().message()), HasSubstr(absl::StrCat("of ", total)));
  EXPECT_TRUE(device.allocate(4).ok()) << "the device survives";
}

TEST(DeviceTest, KeepsDevicesApart) {
  const Device& device = test_device();
  const Device other = Device::open_private_interp(device.info());
  const Stream stream = device.create_stream().value();
  const Stream others = other.create_stream().value();
  Buffer buffer = device.allocate(4).value();
  Buffer foreign = other.allocate(4).value();
  EXPECT_EQ(buffer.fill(others, 0).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(buffer.fill(others, 0).message(),
            absl::StrCat("the buffer belongs to ", device.name(), ", the stream to interp"));
  EXPECT_EQ(buffer.copy_from(stream, foreign, 4).code(), StatusCode::kInvalidArgument);
  Event event = other.create_event().value();
  EXPECT_EQ(
      event.record(stream).message(),
      absl::StrCat("an event and its stream: one belongs to interp, the other to ", device.name()));
  EXPECT_FALSE(stream.wait(event).ok());
  Event own = device.create_event().value();
  EXPECT_FALSE(Event::elapsed_ms(event, own).ok());
}

}  // namespace
}  // namespace heddle::runtime
