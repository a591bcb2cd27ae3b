#include "fuzz/record.h"

#include <ctime>
#include <fstream>
#include <iostream>

namespace heddle::fuzz {

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof(text), "%Y-%m-%d", std::gmtime(&now));
  return text;
}

void report(const nlohmann::ordered_json& json, bool print, const std::string& file) {
  if (print) std::cout << json.dump(2) << "\n";
  if (!file.empty()) std::ofstream(file) << json.dump(2) << "\n";
}

}  // namespace heddle::fuzz
