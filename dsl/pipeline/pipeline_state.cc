#include "heddle/dsl/pipeline/pipeline_state.h"

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"

namespace heddle {

PipelineStages::PipelineStages(int stages, int under_way, SourceLoc loc)
    : stages_(stages), under_way_(under_way) {
  if (under_way == 0 || (under_way > 0 && under_way <= stages - 2)) return;
  detail::fail(loc,
               absl::StrCat("a pipeline of ", stages, " stages, of which products under way read ",
                            under_way, " while another is waited for"),
               "one stage is in use and one is filled: under_way is 0 to stages - 2");
  under_way_ = 0;
}

}  // namespace heddle
