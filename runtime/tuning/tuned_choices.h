// Files of tuned choices: which candidate of an operation was the fastest for a problem, on devices of a
// name. They are JSON, one for each device and operation, in the user's cache folder:
//
//   ~/.cache/heddle/tuned/nvidia_h200/gemm.json
//
//   {"version": 1, "tunings": [{"device": "NVIDIA H200", "operation": "gemm", "choices": [
//     {"problem": "…", "choice": "…", "us": 170.1, "model": "…", "model_us": 174.9, "date": "2026-11-23"}]}]}
//
// A file of `heddle tune --export` is the same, with everything in it. A process reads a file when it first
// launches the operation on such a device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/tuning/chosen_configs.h"

namespace heddle::runtime {

// The fastest candidate for a problem, and the one that the model chose.
struct TunedChoice {
  // As to_string() gives them.
  std::string problem, choice, model;
  double us = 0, model_us = 0;  // of a call
  std::string date;             // when it was measured, such as "2026-11-23"
};
// The choices of an operation on devices of a name.
struct Tuning {
  // The device's name, the operation's, and a choice for each problem.
  std::string device, operation;
  std::vector<TunedChoice> choices;
};

// The folder of the files: tuned/ below HEDDLE_CACHE_DIR, or XDG_CACHE_HOME/heddle, or ~/.cache/heddle.
// kFailedPrecondition where none of these variables and no HOME is set.
StatusOr<std::string> tuning_folder();

// A file's text from tunings, and back. kInvalidArgument says what is wrong with a text.
std::string tunings_to_json(const std::vector<Tuning>& tunings);
StatusOr<std::vector<Tuning>> tunings_from_json(absl::string_view text);

// A file's tunings. kNotFound where there is none; kInvalidArgument, with the path, for one that is none.
StatusOr<std::vector<Tuning>> read_tunings(const std::string& path);
// Everything in the folder, sorted. What cannot be read is left out, and `warnings` says why.
StatusOr<std::vector<Tuning>> read_all_tunings(std::vector<std::string>* warnings);

// Adds choices to the user's file, where they take the place of those of the same problems, and makes this
// process use them. The file is replaced as a whole, so that a reader never sees a part of it; a file that
// cannot be read is replaced too. Errors: a folder or file that cannot be written.
Status keep_tuning(const Tuning& tuning);

// The choices of the user's file for an operation on devices of a name; nullptr where there are none, or
// HEDDLE_TUNE=off. The file is read once; of a bad one stderr says why it is ignored. Thread-safe.
std::shared_ptr<ChosenConfigs> tuned_choices(const std::string& device,
                                             const std::string& operation);

// Says in the log, at its level debug, by which candidate a call solves a problem, and whether it was tuned or is the model's.
void log_choice(const std::string& operation, const std::string& device, const std::string& problem,
                const std::string& choice, bool tuned);

}  // namespace heddle::runtime
