// The functions of verbs about a group's configuration and its members, for the table of the group verbs.
#pragma once

#include <map>

#include "ctl/context.h"
#include "proto/bodies_client.h"

namespace rmq::ctl {

Outcome<void> show_group(Context& c);
Outcome<void> set_group_mode(Context& c);
Outcome<void> show_running(Context& c);
Outcome<void> consume_one(Context& c);

// Which member has which queue, as the members tell it; those that cannot tell are passed over.
std::map<proto::MessageQueue, std::string> owners_of(Context& c, const std::string& group);

}  // namespace rmq::ctl
