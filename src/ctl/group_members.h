// The functions of verbs about a group's configuration and its members, for the table of the group verbs.
#pragma once

#include "ctl/context.h"

namespace rmq::ctl {

Outcome<void> show_group(Context& c);
Outcome<void> set_group_mode(Context& c);
Outcome<void> show_running(Context& c);
Outcome<void> consume_one(Context& c);

}  // namespace rmq::ctl
