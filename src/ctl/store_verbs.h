// What the verbs of the family "store" share: they look at a directory, and need no server.
#pragma once

#include <string>

#include "base/result.h"
#include "ctl/context.h"

namespace rmq::ctl {

// Why a store cannot be looked at.
Failure store_failure(const std::string& root, const Error& e);

Outcome<void> store_dump(Context& c);  // verb_store_dump.cc

}  // namespace rmq::ctl
