#include "heddle/runtime/observe/observed_launch.h"

#include "absl/strings/str_cat.h"
#include "heddle/runtime/observe/log.h"
#include "heddle/runtime/observe/ranges.h"

namespace heddle::runtime {

namespace {
bool somebody_observes() { return logs(LogLevel::kDebug) || profiler_ranges_are_on(); }
}  // namespace

bool launches_are_observed() {
  if (somebody_observes()) return true;
  // Whoever begins to after this is seen here, or says so himself.
  detail::launches_may_be_observed.exchange(false);
  if (!somebody_observes()) return false;
  detail::launches_may_be_observed.store(true);
  return true;
}

void ask_again_who_observes_launches() { detail::launches_may_be_observed.store(true); }

void log_launch(const LaunchSite& site, const std::string& device, const LaunchShape& shape,
                const Status& status) {
  if (!logs(LogLevel::kDebug)) return;
  const std::string launch =
      absl::StrCat(site.describe(), " launched on ", device, ": ", describe(shape));
  log(LogLevel::kDebug, status.ok() ? launch : absl::StrCat(launch, ": ", status.message()));
}

}  // namespace heddle::runtime
