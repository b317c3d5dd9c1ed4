package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// delay: a level and a timer property delay, the one beside them does not, and each comes once.
func delay(e *env) error {
	topic, err := e.topic(2)
	if err != nil {
		return err
	}
	s := &sink{}
	keep, came := s.as(""), map[string]time.Time{}
	_, err = e.push(e.name("g"), topic, "*", false,
		func(ctx context.Context, msgs []*primitive.MessageExt) consumer.ConsumeResult {
			result := keep(ctx, msgs)
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, m := range msgs {
				came[string(m.Body)] = time.Now()
			}
			return result
		})
	if err != nil {
		return err
	}
	level := primitive.NewMessage(topic, []byte("level"))
	level.WithDelayTimeLevel(2)
	timer := primitive.NewMessage(topic, []byte("timer"))
	timer.WithProperty("TIMER_DELAY_MS", "4000")
	sent := time.Now()
	for _, m := range []*primitive.Message{level, timer, primitive.NewMessage(topic, []byte("now"))} {
		if _, err := e.send(m); err != nil {
			return err
		}
	}
	if err := s.exactlyOnce(map[string]bool{"level": true, "timer": true, "now": true}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := came["level"].Sub(sent); d < 5*time.Second {
		return fmt.Errorf("level 2 came after %s", d)
	}
	// The reference rounds down to seconds, and takes an exact second for the one before.
	if d := came["timer"].Sub(sent); d < 2*time.Second {
		return fmt.Errorf("4 s of delay came after %s", d)
	}
	if !came["now"].Before(came["timer"]) || !came["now"].Before(came["level"]) {
		return fmt.Errorf("what has no delay came last")
	}
	return nil
}

// restartBroker has the runner kill the broker and start it again; it needs one that does.
func restartBroker() error {
	fmt.Println("! restart")
	answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil || answer != "restarted\n" {
		return fmt.Errorf("the broker was not restarted: %q %v", answer, err)
	}
	return nil
}

// orderOverRestart: the numbers of each queue come in order, also over a kill of the broker; some may come again.
func orderOverRestart(e *env) error {
	topic, err := e.topic(4)
	if err != nil {
		return err
	}
	s := &sink{}
	if _, err := e.push(e.name("g"), topic, "*", true, s.as("")); err != nil {
		return err
	}
	send := func(n int) error {
		return until(fmt.Sprintf("message %d is acknowledged", n), func() bool {
			return sendTo(e, topic, e.brokerName(topic), n%4, strconv.Itoa(n)) == nil
		})
	}
	for n := 0; n < 80; n++ {
		if n == 40 {
			if err := restartBroker(); err != nil {
				return err
			}
		}
		if err := send(n); err != nil {
			return err
		}
	}
	got := func() map[string]bool {
		msgs, _ := s.snapshot()
		all := map[string]bool{}
		for _, m := range msgs {
			all[string(m.Body)] = true
		}
		return all
	}
	if err := until("all 80", func() bool { return len(got()) == 80 }); err != nil {
		return fmt.Errorf("%d of 80 came: %w", len(got()), err)
	}
	msgs, _ := s.snapshot()
	last := map[int]int{}
	for _, m := range msgs {
		n, _ := strconv.Atoi(string(m.Body))
		before, seen := last[n%4]
		if (!seen && n >= 4) || (seen && n > before+4) {
			return fmt.Errorf("%d came after %d (%v)", n, before, seen)
		}
		last[n%4] = n
	}
	return nil
}
