#include "daemon/namesrv/config_source.h"

#include <filesystem>

#include "daemon/overruled.h"

namespace rmq::namesrv {

namespace {

using Entries = std::vector<detail::ConfigEntry>;

NamesrvConfig config_from(const ConfigSource& source, const Entries& main, const Entries& own,
                          const std::string& own_path, ConfigErrors& errors,
                          std::vector<std::string>* useless) {
  const auto table = namesrv_config_table();
  NamesrvConfig c = source.defaults;
  config_take(table, c, main, source.file, errors);
  config_take(table, c, own, own_path, errors);
  if (useless != nullptr) *useless = overruled_keys(main, source.file, own, own_path);
  config_take_settings(table, c, source.settings, errors);
  if (!metric_labels_of(c.metricsLabel))
    errors.push_back(
        "'metricsLabel' must be name:value pairs separated by ',', with names that the metrics do not "
        "have already");
  return c;
}

}  // namespace

std::string own_config_path(const NamesrvConfig& c) {
  if (c.kvConfigPath.empty()) return {};
  return (std::filesystem::path(c.kvConfigPath).parent_path() / "namesrv.toml").string();
}

NamesrvConfig read_config(const ConfigSource& source, ConfigErrors& errors,
                          std::vector<std::string>* useless) {
  Entries main, own;
  if (!source.file.empty()) main = detail::read_toml(source.file, errors);
  ConfigErrors seen_again;
  const std::string own_path = own_config_path(config_from(source, main, {}, {}, seen_again, nullptr));
  std::error_code unreadable;
  if (std::filesystem::exists(own_path, unreadable)) own = detail::read_toml(own_path, errors);
  return config_from(source, main, own, own_path, errors, useless);
}

NamesrvConfig config_of(const ConfigSource& source, std::string_view file_text, std::string_view own_text,
                        ConfigErrors& errors) {
  const std::string own_name = "changes at run time";
  const Entries main = detail::read_toml_text(file_text, source.file, errors);
  const Entries own = detail::read_toml_text(own_text, own_name, errors);
  return config_from(source, main, own, own_name, errors, nullptr);
}

}  // namespace rmq::namesrv
