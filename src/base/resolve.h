// Names of hosts by the system's resolver. Blocks.
#pragma once

#include <netdb.h>

#include <string>

namespace rmq {

// getaddrinfo(3), and "localhost" where no /etc/hosts says it. 0, or an EAI_* for gai_strerror(3). The caller
// frees `found` with freeaddrinfo(3); null unless the answer is 0. `port`: a number, may be null.
int resolve_host(const std::string& host, const char* port, int flags, addrinfo*& found);

}  // namespace rmq
