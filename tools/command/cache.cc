#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "heddle/codegen/cache/disk_cache.h"
#include "heddle/tools/command/commands.h"
#include "heddle/tools/command/output.h"
#include "nlohmann/json.hpp"

namespace heddle::tools {
namespace {

using codegen::DiskCache;
using Json = nlohmann::ordered_json;

std::string in_mib(uint64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string entries(int64_t count) {
  return count == 1 ? "1 entry" : absl::StrCat(count, " entries");
}

Exit info(const DiskCache& cache, bool json) {
  const StatusOr<DiskCache::Usage> usage = cache.usage();
  if (!usage.ok()) return failed(usage.status());
  if (json) {
    print(Json{{"folder", cache.path()},
               {"entries", usage->entries},
               {"bytes", usage->bytes},
               {"limit_bytes", cache.limits().bytes}}
              .dump(2) +
          "\n");
  } else {
    absl::PrintF("%s\n%s, %s of %s\n", cache.path(), entries(usage->entries), in_mib(usage->bytes),
                 in_mib(cache.limits().bytes));
  }
  return Exit::kDone;
}

Exit list(const DiskCache& cache, bool json) {
  const StatusOr<std::vector<DiskCache::Entry>> all = cache.entries();
  if (!all.ok()) return failed(all.status());
  Json array = Json::array();
  for (const DiskCache::Entry& entry : *all) {
    const std::string what = entry.damaged   ? "damaged"
                             : entry.foreign ? "of another version of Heddle"
                                             : entry.label,
                      day = absl::FormatTime("%Y-%m-%d", absl::FromUnixSeconds(entry.used),
                                             absl::UTCTimeZone());
    array.push_back({{"file", entry.name}, {"what", what}, {"bytes", entry.bytes}, {"used", day}});
    if (!json) absl::PrintF("%s %9d bytes  %s\n", day, entry.bytes, what);
  }
  if (json) print(array.dump(2) + "\n");
  return Exit::kDone;
}

Exit clear(const DiskCache& cache, bool json) {
  const StatusOr<int> count = cache.clear();
  if (!count.ok()) return failed(count.status());
  print(json ? absl::StrCat("{\"deleted\": ", *count, "}\n")
             : absl::StrCat(entries(*count), " deleted\n"));
  return Exit::kDone;
}

Exit verify(const DiskCache& cache, bool json) {
  const StatusOr<DiskCache::Usage> usage = cache.usage();
  if (!usage.ok()) return failed(usage.status());
  const StatusOr<int> damaged = cache.drop_damaged();
  if (!damaged.ok()) return failed(damaged.status());
  print(json ? absl::StrCat("{\"read\": ", usage->entries, ", \"damaged\": ", *damaged, "}\n")
             : absl::StrCat(entries(usage->entries), " read, ", *damaged, " damaged",
                            *damaged > 0 ? " and deleted\n" : "\n"));
  return Exit::kDone;
}

struct Action {
  const char* name;
  Exit (*run)(const DiskCache& cache, bool json);
};
constexpr Action kActions[] = {
    {"info", info}, {"list", list}, {"clear", clear}, {"verify", verify}};

}  // namespace

std::vector<std::string> cache_actions() {
  std::vector<std::string> names;
  for (const Action& action : kActions) names.push_back(action.name);
  return names;
}

Exit manage_cache(const CacheOptions& options) {
  const StatusOr<std::shared_ptr<DiskCache>> cache = DiskCache::open_of_user();
  if (!cache.ok()) return failed(cache.status());
  for (const Action& action : kActions) {
    if (options.action == action.name) return action.run(**cache, options.json);
  }
  return misused(absl::StrCat("cache: unknown action '", options.action, "'"));
}

}  // namespace heddle::tools
