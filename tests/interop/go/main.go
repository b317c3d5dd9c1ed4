// Command interop runs checks with the Go client of Apache RocketMQ against the brokers of one name server.
//
//	interop NAMESRV BROKER [CHECK]...
//	interop --soak NAMESRV BROKER RATE      the Go clients of tests/soak
//
// It prints "ok NAME" or "FAILED NAME: reason" for each check and counts at the end, as the Java checks do. Deadlines
// are generous, they only end a hang; no check asserts a speed.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/apache/rocketmq-client-go/v2/rlog"
)

type check struct {
	name string
	run  func(*env) error
}

// alone are checks that kill the broker: they run when they are named.
var alone = map[string]bool{"go_order_over_restart": true}

var checks = []check{
	{"go_create_topic", createTopic},
	{"go_send_sync", sendSync},
	{"go_send_async", sendAsync},
	{"go_send_oneway", sendOneway},
	{"go_send_content", sendContent},
	{"go_push_shared", pushShared},
	{"go_tags", tags},
	{"go_sql", sql},
	{"go_orderly", orderly},
	{"go_retry", retry},
	{"go_offset_persistence", offsetPersistence},
	{"go_reset", reset},
	{"go_transaction", transaction},
	{"go_delay", delay},
	{"go_rebalance", rebalance},
	{"go_broadcast", broadcast},
	{"go_namespace", namespace},
	{"go_from_where", fromWhere},
	{"go_dead_letter", deadLetter},
	{"go_orderly_retry", orderlyRetry},
	{"go_request", request},
	{"go_trace", trace},
	{"go_compressed", compressed},
	{"go_batch", batch},
	{"go_batch_unanswered", batchUnanswered},
	{"go_pull", pull},
	{"go_pull_tags", pullTags},
	{"go_poll", poll},
	{"go_poll_retry", pollRetry},
	{"go_one_connection", oneConnection},
	{"go_running_info", runningInfo},
	{"go_directly", directly},
	{"go_offset_diff", offsetDiff},
	{"go_groups", subscriptionGroup},
	{"go_change_topic", changeTopic},
	{"go_selectors", selectors},
	{"go_order_over_restart", orderOverRestart},
}

func wanted(name string, names []string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return len(names) == 0 && !alone[name]
}

func runCheck(c check, namesrv, broker string) (err error) {
	e := newEnv(namesrv, broker, c.name)
	defer e.close()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return c.run(e)
}

func main() {
	rlog.SetLogLevel("fatal")
	if len(os.Args) == 5 && os.Args[1] == "--soak" {
		if err := soak(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: interop NAMESRV BROKER [CHECK]... | --soak NAMESRV BROKER RATE")
		os.Exit(2)
	}
	passed, failed := 0, 0
	for _, c := range checks {
		if !wanted(c.name, os.Args[3:]) {
			continue
		}
		began := time.Now()
		if err := runCheck(c, os.Args[1], os.Args[2]); err != nil {
			failed++
			fmt.Printf("FAILED %s: %v\n", c.name, err)
		} else {
			passed++
			fmt.Printf("ok %s (%d ms)\n", c.name, time.Since(began).Milliseconds())
		}
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 || passed == 0 {
		os.Exit(1)
	}
}
