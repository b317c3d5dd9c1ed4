// rmqctl doctor: the checks of doctor.h one after another, and what they found.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ctl/context.h"
#include "ctl/doctor.h"
#include "proto/fastjson.h"

namespace rmq::ctl {

namespace {

constexpr size_t columns = 80, indent = 9;

// Breaks at blanks; the first line goes on where the caller is, the others are indented.
std::string wrapped(std::string_view text) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (column > indent && column + 1 + display_width(word) > columns) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      column++;
    }
    out += word;
    column += display_width(word);
  }
  return out;
}

std::string text_of(const Finding& f) {
  return fmt::format("{:<{}}{}\n", f.grade == Grade::problem ? "PROBLEM" : name_of(f.grade), indent,
                     wrapped(printable(f.subject + ": " + f.text)));
}

// Those of a grade, what is alike together: a cure that several have is told once, behind them.
std::string text_of(std::vector<const Finding*> found) {
  std::string out;
  while (!found.empty()) {
    const Finding& first = *found.front();
    for (const Finding* f : found)
      if (f->check == first.check && f->cure == first.cure) out += text_of(*f);
    if (!first.cure.empty()) out += fmt::format("{:>{}}{}\n", "-> ", indent, wrapped(printable(first.cure)));
    std::erase_if(found, [&](const Finding* f) { return f->check == first.check && f->cure == first.cure; });
  }
  return out;
}

// The worst last, where the eye is when it has scrolled by; what is well only when it is asked for.
std::string page_of(const std::vector<Finding>& findings, bool all) {
  std::string out;
  for (Grade grade : {Grade::ok, Grade::note, Grade::warning, Grade::problem}) {
    std::vector<const Finding*> found;
    for (const Finding& f : findings)
      if (f.grade == grade) found.push_back(&f);
    if (grade == Grade::ok && !all && !found.empty()) {
      out +=
          fmt::format("{:<{}}{} checks found nothing wrong; --all shows them\n", "ok", indent, found.size());
    } else {
      out += text_of(std::move(found));
    }
  }
  return out;
}

std::string json_of(const std::vector<Finding>& findings) {
  proto::JsonWriter w(proto::JsonStyle::strict);
  w.begin_array();
  for (const Finding& f : findings) {
    w.begin_object();
    w.member("check", f.check);
    w.member("grade", name_of(f.grade));
    w.member("subject", f.subject);
    w.member("text", f.text);
    w.member("cure", f.cure);
    w.end_object();
  }
  w.end_array();
  return w.take() + "\n";
}

std::string plural(size_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

Outcome<void> doctor(Context& c) {
  Doctor d(c);
  const auto show_progress = [&](const char* what) {
    if (Context::stderr_is_terminal() && !c.options().json) c.note(what);
  };
  show_progress("looking at name servers");
  d.look_at_name_servers();
  show_progress("looking at brokers");
  d.look_at_brokers();
  show_progress("looking at consumer groups");
  d.look_at_groups();
  show_progress("looking at this host");
  d.look_at_host(c.has_arg(0) ? c.arg(0) : "");
  std::array<size_t, 4> counts{};
  for (const Finding& f : d.findings()) counts[static_cast<size_t>(f.grade)]++;
  if (c.options().json) {
    c.print(json_of(d.findings()));
  } else {
    c.print(page_of(d.findings(), c.options().all || c.has_arg(0)));  // a STORE is named to be measured
  }
  const size_t problems = counts[static_cast<size_t>(Grade::problem)],
               warnings = counts[static_cast<size_t>(Grade::warning)];
  if (!d.has_reached_anything())
    return fail(Exit::unreachable, "no name server can be reached: give its address by -n or NAMESRV_ADDR");
  if (problems + warnings != 0)
    return fail(Exit::refused, fmt::format("{}{}{} found", problems ? plural(problems, "problem") : "",
                                           problems && warnings ? " and " : "",
                                           warnings ? plural(warnings, "warning") : ""));
  if (!c.options().json) c.print("Nothing has to be done.\n");
  return {};
}

constexpr OptionSpec doctor_options[] = {
    {"-a,--all", nullptr, &Options::all, "also what is as it should be"},
    {"-c,--cluster", "NAME", &Options::cluster, "only the brokers of this cluster"},
};

constexpr Verb verbs[] = {
    {"doctor", "[STORE]", 0, 1, doctor_options, doctor,
     "look for what goes wrong in practice, and say what to do",
     "Looks at name servers (reachable, in agreement), brokers (reachable at the address that they tell "
     "clients, "
     "clock, disk, flush latency), consumer groups (members that subscribe differently, queues that nobody "
     "consumes) and, where a broker of the cluster runs on this host, at the kernel's io_uring, the limits "
     "of the "
     "daemon, and the time that the store's disk needs to make a write durable. STORE is the directory of a "
     "store "
     "on this host, when it is not that of a running broker. Groups whose consumers are all gone while "
     "messages "
     "wait are named. Nothing is changed.\n"
     "What is well is only counted, unless --all or a STORE is given; the worst comes last. ok: as it should "
     "be. note: worth knowing. warning: "
     "will be a problem, or is one for some clients. "
     "PROBLEM: "
     "messages are in danger or clients are not served. The exit code is 0 when there is neither warning nor "
     "problem, 1 when there is, 69 when nothing could be reached.",
     true},
};

}  // namespace

std::span<const Verb> doctor_verbs() {
  return verbs;
}

}  // namespace rmq::ctl
