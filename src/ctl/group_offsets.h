// The functions of "rmqctl group reset", "skip" and "clone", for the table of the group verbs.
#pragma once

#include "ctl/context.h"

namespace rmq::ctl {

Outcome<void> reset_group(Context& c);
Outcome<void> skip_group(Context& c);
Outcome<void> clone_group(Context& c);

}  // namespace rmq::ctl
