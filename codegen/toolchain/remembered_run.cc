#include "heddle/codegen/toolchain/remembered_run.h"

#include "absl/strings/str_cat.h"
#include "heddle/codegen/cache/fields.h"

namespace heddle::codegen {

std::string run_key(absl::string_view program, const Command& command) {
  std::string key;
  append_field(key, "run");
  append_field(key, program);
  for (const auto* texts : {&command.arguments, &command.environment}) {
    append_field(key, absl::StrCat(texts->size()));
    for (const std::string& text : *texts) append_field(key, text);
  }
  append_field(key, command.input);
  return key;
}

std::optional<Finished> recall_run(DiskCache* cache, absl::string_view key) {
  if (cache == nullptr) return std::nullopt;
  const std::optional<std::string> value = cache->find(key);
  if (!value) return std::nullopt;
  Fields fields(*value);
  const auto output = fields.next(), error = fields.next(), file = fields.next();
  if (!file || !fields.at_end()) return std::nullopt;
  Finished run;
  run.standard_output = std::string(*output);
  run.standard_error = std::string(*error);
  run.output_file = std::string(*file);
  return run;
}

void remember_run(DiskCache* cache, absl::string_view key, absl::string_view label,
                  const Finished& run) {
  if (cache == nullptr) return;
  std::string value;
  for (const std::string* text : {&run.standard_output, &run.standard_error, &run.output_file}) {
    append_field(value, *text);
  }
  cache->store(key, label, value);
}

}  // namespace heddle::codegen
