// Reports as JSON.
#include "heddle/runtime/observe/kernel_report.h"
#include "nlohmann/json.hpp"

namespace heddle::runtime {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Dim3& extents) { return {extents.x, extents.y, extents.z}; }

void put_place(Json& json, const ir::SourceLine& place) {
  if (place.file.empty()) return;
  json["file"] = place.file;
  json["line"] = place.line;
}

Json json_of(const KernelReport::Guard& guard, bool of_mode) {
  Json json = {{"argument", guard.argument}, {"name", guard.name}, {"fact", guard.fact}};
  if (of_mode) json["mode"] = guard.mode;
  json["value"] = guard.value;
  json["relied_on"] = guard.relied_on;
  json["describe"] = guard.describe;
  return json;
}

Json json_of(const KernelReport::Code& code) {
  Json json = {{"assembler", code.assembler},
               {"registers", code.registers},
               {"spill_store_bytes", code.spill_store_bytes},
               {"spill_load_bytes", code.spill_load_bytes},
               {"stack_bytes", code.stack_bytes},
               {"static_shared_bytes", code.static_shared_bytes},
               {"dynamic_shared_bytes", code.dynamic_shared_bytes},
               {"constant_bytes", code.constant_bytes},
               {"code_bytes", code.code_bytes}};
  if (code.barriers) json["barriers"] = *code.barriers;
  json["cubin_bytes"] = code.cubin_bytes;
  return json;
}

Json json_of(const Occupancy& occupancy) {
  Json limits = Json::array();
  for (const OccupancyLimit limit : occupancy.limits) limits.push_back(name_of(limit));
  return {{"blocks", occupancy.blocks},
          {"warps", occupancy.warps},
          {"max_warps", occupancy.max_warps},
          {"limits", std::move(limits)}};
}

Json json_of(const KernelReport::Remark& remark) {
  const bool note = remark.severity == codegen::Severity::kInfo;
  Json json = {{"kind", note ? "performance" : codegen::severity_name(remark.severity)}};
  if (!remark.code.empty()) json["code"] = remark.code;
  json["text"] = remark.text;
  put_place(json, remark.place);
  if (!remark.op.empty()) json["op"] = remark.op;
  if (remark.ptx_line > 0) json["ptx_line"] = remark.ptx_line;
  return json;
}

bool of_mode(const std::string& fact) {
  for (const ir::FactInfo& info : ir::kFacts) {
    if (info.name == fact) return info.per_dim;
  }
  return false;
}

}  // namespace

std::string to_json(const KernelReport& report) {
  Json json = {{"name", report.name}};
  put_place(json, report.place);
  json["target"] = report.target;
  if (report.block.x != 0) json["block"] = json_of(report.block);
  json["cluster"] = json_of(report.cluster);
  json["passes"] = report.passes;
  if (report.recalled) {
    json["recalled"] = true;
  } else {
    json["ops_traced"] = report.ops_traced;
    json["ops_optimized"] = report.ops_optimized;
  }
  json["times_us"] = {{"trace", report.times.trace},
                      {"passes", report.times.passes},
                      {"emit", report.times.emit},
                      {"assemble", report.times.assemble},
                      {"ptxas", report.times.ptxas}};
  json["guards"] = Json::array();
  for (const KernelReport::Guard& guard : report.guards) {
    json["guards"].push_back(json_of(guard, of_mode(guard.fact)));
  }
  json["origin"] = name_of(report.origin);
  if (report.ptx_edited) json["ptx_edited"] = true;
  if (report.code) json["code"] = json_of(*report.code);
  if (report.occupancy) json["occupancy"] = json_of(*report.occupancy);
  json["remarks"] = Json::array();
  for (const KernelReport::Remark& remark : report.remarks) {
    json["remarks"].push_back(json_of(remark));
  }
  // Names and texts are the user's, and may be no UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace heddle::runtime
