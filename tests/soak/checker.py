"""Accounts for every message of a soak. Clients tell what they do in lines, fields separated by tabs;
times are microseconds of the wall clock, a key is a message's own:

  @ S kind key time due want     it is going to be sent; it may not come before `due`; what shall become of it
  @ A kind key time place        acknowledged; place is "queue:offset"
  @ F kind key time text         the send failed: it may be there or not
  @ V timer key time             it is going to be recalled
  @ X timer key time             the recall was acknowledged
  @ C tran key time              the broker asked what became of it
  @ R kind key time place reconsumeTimes consumer
                                 it came

What is right, by kind:
  plain, go      what was acknowledged comes
  delay, timer, godelay
                 the same, not before its time, and not from two places; what was recalled does not
  tran           "commit" comes, from one place; "rollback" never does
  retry          "failN" fails N times and comes N+1 times at least, a second apart; "dead" ends in the
                 dead-letter queue, which nothing else does
  pop            "failN" as retry, by consumers that pop
  order          keys are "who/number"; numbers of one come in order, no number before the one before it
  dedup          keys that are sent again and again; all acknowledgements name one place, and there it is
A message that comes again from the same place was redelivered: consumers must bear that, it is counted.
"""
import bisect

DELAYED = ('delay', 'timer', 'godelay')
RETRIED = ('retry', 'pop')
KINDS = ('plain', 'go', 'delay', 'godelay', 'timer', 'tran', 'retry', 'pop', 'order', 'dedup')
RETRY_US = 1_000_000            # delay level 1
SHOWN = 10                      # violations of a kind that are told in full


class Message:
    __slots__ = ('sent_us', 'due_us', 'want', 'acked', 'sent_to', 'recall', 'came', 'places', 'first_us',
                 'first', 'dead')

    def __init__(self, sent_us, due_us, want):
        self.sent_us, self.due_us, self.want = sent_us, due_us, want
        self.acked, self.sent_to, self.recall = 0, set(), None
        self.came, self.places, self.first_us, self.first, self.dead = 0, set(), None, {}, 0


class Checker:
    def __init__(self):
        self.messages = {k: {} for k in KINDS}
        self.failed = {k: 0 for k in KINDS}
        self.asked = 0
        self.order_came = []            # (time, number in arrival, who, number)
        self.strange = []               # violations that are seen as they happen: (kind, key, text)
        self.unsent = {}                # lines of messages whose S comes later, from another program
        self.lines = 0
        self.step_us = 0                # how far the wall clock was set meanwhile: times may be off by that

    def feed(self, line):
        """One line of a client; lines of other programs' making are passed over."""
        f = line.rstrip('\n').split('\t')
        if f[0] != '@' or len(f) < 5 or f[1] not in 'SAFVXCR':
            return
        self.lines += 1
        what, kind, key, us = f[1], f[2], f[3], int(f[4])
        if what == 'S':
            if key not in self.messages[kind]:
                self.messages[kind][key] = Message(us, int(f[5]), f[6] if len(f) > 6 else '')
            for early in self.unsent.pop((kind, key), []):
                self.feed(early)
            return
        m = self.messages['retry' if kind == 'dlq' else kind].get(key)
        if m is None:
            self.unsent.setdefault(('retry' if kind == 'dlq' else kind, key), []).append(line)
        elif what == 'A':
            m.acked += 1
            m.sent_to.add(f[5])
        elif what == 'F':
            self.failed[kind] += 1
        elif what == 'V':
            m.recall = m.recall or 'tried'
        elif what == 'X':
            m.recall = 'done'
        elif what == 'C':
            self.asked += 1
        elif kind == 'dlq':
            m.dead += 1
        else:
            self.came(kind, key, m, us, f[5], int(f[6]))

    def came(self, kind, key, m, us, place, times):
        m.came += 1
        m.places.add(place)
        if m.first_us is None:
            m.first_us = us
        if kind in DELAYED and us + self.step_us < m.due_us:
            self.strange.append((kind, key, 'came %.3f ms early' % ((m.due_us - us) / 1000)))
        if kind in RETRIED and times not in m.first:
            m.first[times] = us
        if kind == 'order':
            who, number = key.split('/')
            self.order_came.append((us, len(self.order_came), who, int(number)))

    # ---- what is owed -------------------------------------------------------------------------------

    @staticmethod
    def is_owed(kind, m):
        """Whether it must come still."""
        if not m.acked or m.recall:
            return False
        if kind == 'tran':
            return m.want == 'commit' and not m.came
        if kind in RETRIED:
            if m.want == 'dead':
                return not m.dead
            return max(m.first, default=-1) < int(m.want[len('fail'):])
        return not m.came

    def owed(self):
        """Messages that must come still: {kind: [key]}, and the time of the last that has one."""
        out, last = {}, 0
        for kind, messages in self.messages.items():
            keys = [k for k, m in messages.items() if self.is_owed(kind, m)]
            if keys:
                out[kind] = keys
                last = max([last] + [messages[k].due_us for k in keys])
        return out, last

    # ---- judging ------------------------------------------------------------------------------------

    def violations(self):
        """All of them: (kind, key, text)."""
        out = self.strange + [key + ('came from nowhere: nobody sent it',) for key in self.unsent]
        for kind, messages in self.messages.items():
            for key, m in messages.items():
                out += [(kind, key, text) for text in self.wrong(kind, m)]
        return out + self.order_violations()

    def wrong(self, kind, m):
        if self.is_owed(kind, m):
            yield 'was acknowledged and is lost'
        if kind in DELAYED + ('tran', 'dedup') and len(m.places) > 1:
            yield 'is there %d times: %s' % (len(m.places), sorted(m.places))
        if m.recall == 'done' and m.came:
            yield 'came although it was recalled'
        if kind == 'tran' and m.want == 'rollback' and m.came:
            yield 'came although it was rolled back'
        if kind == 'dedup' and len(m.sent_to) > 1:
            yield 'was acknowledged at %d places: %s' % (len(m.sent_to), sorted(m.sent_to))
        if kind == 'dedup' and m.acked and m.places - m.sent_to:
            yield 'came from %s, acknowledged was %s' % (sorted(m.places), sorted(m.sent_to))
        if kind in RETRIED:
            yield from self.wrong_retry(m)

    def wrong_retry(self, m):
        if m.dead and m.want != 'dead':
            yield 'is a dead letter, and would have been taken'
        for times, us in m.first.items():
            before = m.first.get(times - 1)
            if before is not None and us + self.step_us < before + RETRY_US:
                yield 'retry %d came %.3f ms after the one before' % (times, (us - before) / 1000)

    def order_violations(self):
        last, out = {}, []
        for _, _, who, number in sorted(self.order_came):
            before = last.get(who, -1)
            if number > before + 1:
                out.append(('order', '%s/%d' % (who, number), 'came after number %d' % before))
            last[who] = number
        return out

    # ---- telling ------------------------------------------------------------------------------------

    def counts(self, kind):
        messages = self.messages[kind].values()
        return dict(sent=len(messages), acknowledged=sum(1 for m in messages if m.acked),
                    failed=self.failed[kind], came=sum(1 for m in messages if m.came or m.dead),
                    redelivered=sum(max(0, m.came - max(1, len(m.places))) for m in messages),
                    copies=sum(max(0, len(m.places) - 1) for m in messages) if kind not in RETRIED else 0)

    def lateness_ms(self, kind, quiet_us):
        """Of delayed messages that were due and came outside the times of `quiet_us` [(from, to)]: sorted."""
        starts = [a for a, _ in quiet_us]

        def disturbed(us):
            i = bisect.bisect_right(starts, us) - 1
            return i >= 0 and us <= quiet_us[i][1]
        return sorted((m.first_us - m.due_us) / 1000 for m in self.messages[kind].values()
                      if m.due_us and m.first_us and not disturbed(m.due_us))

    def report(self, quiet_us=()):
        """The table, and what is wrong, as text; how much is wrong."""
        wrong = self.violations()
        columns = ('sent', 'acknowledged', 'failed', 'came', 'redelivered', 'copies')
        lines = ['%-8s %8s %12s %8s %8s %11s %8s %6s %12s  %s' % (
            ('kind',) + columns + ('owed', 'violations', 'late ms p50/p99/max'))]
        owed, _ = self.owed()
        for kind in KINDS:
            c = self.counts(kind)
            late = self.lateness_ms(kind, quiet_us) if kind in DELAYED else []
            text = ''
            if late:
                text = '%.0f / %.0f / %.0f' % (late[len(late) // 2], late[int(len(late) * .99)], late[-1])
            lines.append('%-8s %8d %12d %8d %8d %11d %8d %6d %12d  %s' % (
                (kind,) + tuple(c[x] for x in columns) +
                (len(owed.get(kind, [])), sum(1 for v in wrong if v[0] == kind or
                                              (kind == 'retry' and v[0] == 'dlq')), text)))
        lines.append('transactions that the broker asked about: %d' % self.asked)
        for kind in KINDS + ('dlq',):
            mine = [v for v in wrong if v[0] == kind]
            lines += ['VIOLATION %s %s: %s' % v for v in mine[:SHOWN]]
            if len(mine) > SHOWN:
                lines.append('VIOLATION %s: and %d more' % (kind, len(mine) - SHOWN))
        return '\n'.join(lines), len(wrong)

    def progress(self):
        parts = []
        for kind in KINDS:
            c = self.counts(kind)
            parts.append('%s %d/%d' % (kind, c['came'], c['acknowledged']))
        return ', '.join(parts)
