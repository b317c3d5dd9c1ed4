// The function of "rmqctl cluster import", for the table of the export verbs.
#pragma once

#include "ctl/context.h"

namespace rmq::ctl {

// The file of topics and groups in a directory of exports.
inline constexpr std::string_view metadata_file = "metadata.json";

Outcome<void> import_metadata(Context& c);

}  // namespace rmq::ctl
