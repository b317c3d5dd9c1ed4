package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// perConsumer is how many messages of a sink each consumer got, as text.
func (s *sink) perConsumer() string {
	_, by := s.snapshot()
	n := map[string]int{}
	for _, who := range by {
		n[who]++
	}
	return fmt.Sprint(n)
}

// awaitShares sends a message to each of eight queues until they come to the consumers as wanted; it returns how long
// that took. The client does not tell its queues.
func awaitShares(e *env, s *sink, topic, want string) (time.Duration, error) {
	began, probe := time.Now(), 0
	err := until("the queues are shared as "+want, func() bool {
		s.clear()
		probe++
		prefix := fmt.Sprintf("probe%d_", probe)
		if sendToAll(e, topic, prefix, 8, 8) != nil {
			return false
		}
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
			if msgs, _ := s.snapshot(); len(msgs) >= 8 {
				break
			}
		}
		return s.perConsumer() == want
	})
	took := time.Since(began)
	time.Sleep(quiet) // what came to both while a queue changed hands
	return took, err
}

// rebalance: a consumer joins and leaves, the queues are shared anew at once, each message comes once.
func rebalance(e *env) error {
	topic, err := e.topic(8)
	if err != nil {
		return err
	}
	group, s := e.name("g"), &sink{}
	if _, err := e.pushWith(group, topic, s.as("a")); err != nil {
		return err
	}
	round := func(prefix, want string) error {
		s.clear()
		if err := sendToAll(e, topic, prefix, 8, 80); err != nil {
			return err
		}
		if err := s.exactlyOnce(numbered(prefix, 80)); err != nil {
			return fmt.Errorf("%s: %w", prefix, err)
		}
		if got := s.perConsumer(); got != want {
			return fmt.Errorf("%s: shares of 80 messages %s, expected %s", prefix, got, want)
		}
		return e.awaitCommitted(topic, group)
	}
	if err := round("one", "map[a:80]"); err != nil {
		return err
	}
	b, err := e.pushWith(group, topic, s.as("b"))
	if err != nil {
		return err
	}
	joined, err := awaitShares(e, s, topic, "map[a:4 b:4]")
	if err != nil {
		return err
	}
	if err := round("two", "map[a:40 b:40]"); err != nil {
		return err
	}
	if err := b.Shutdown(); err != nil {
		return err
	}
	left, err := awaitShares(e, s, topic, "map[a:8]")
	if err != nil {
		return err
	}
	e.note("shared anew %d ms after a join, %d ms after a leave", joined.Milliseconds(), left.Milliseconds())
	return round("three", "map[a:80]")
}

// broadcast: each consumer of a group gets each message, goes on at its own offset, and tells the broker none.
func broadcast(e *env) error {
	topic, err := e.topic(4)
	if err != nil {
		return err
	}
	group, instances := e.name("g"), []string{e.name("i"), e.name("i"), e.name("i")}
	start := func(instance string, s *sink) (rocketmq.PushConsumer, error) {
		return e.pushWith(group, topic, s.as(""), consumer.WithConsumerModel(consumer.BroadCasting),
			consumer.WithInstance(instance))
	}
	sinks := []*sink{{}, {}, {}}
	var first rocketmq.PushConsumer
	for i, s := range sinks {
		c, err := start(instances[i], s)
		if err != nil {
			return err
		}
		if i == 0 {
			first = c
		}
	}
	if err := e.awaitQueues(topic, 4, group); err != nil {
		return err
	}
	if err := sendToAll(e, topic, "one", 4, 40); err != nil {
		return err
	}
	for _, s := range sinks {
		if err := s.exactlyOnce(numbered("one", 40)); err != nil {
			return err
		}
	}
	if err := first.Shutdown(); err != nil {
		return err
	}
	if err := sendToAll(e, topic, "two", 4, 40); err != nil {
		return err
	}
	again := &sink{}
	if _, err := start(instances[0], again); err != nil {
		return err
	}
	if err := again.exactlyOnce(numbered("two", 40)); err != nil {
		return fmt.Errorf("after a restart: %w", err)
	}
	told, err := ask(e.broker, 43, nil)
	if err != nil {
		return err
	}
	committed, _, _ := strings.Cut(string(told.body), `"pullOffsetTable"`)
	if strings.Contains(committed, `"`+topic+"@"+group+`"`) {
		return fmt.Errorf("the broker has offsets of a broadcast group")
	}
	return nil
}

// oneConnection: two groups of one client each get all; when one of them leaves, the other goes on.
func oneConnection(e *env) error {
	topic, err := e.topic(2)
	if err != nil {
		return err
	}
	instance := consumer.WithInstance(e.name("i"))
	leaving, staying := &sink{}, &sink{}
	groups := []string{e.name("g"), e.name("g")}
	c, err := e.pushWith(groups[0], topic, leaving.as(""), instance)
	if err != nil {
		return err
	}
	if _, err := e.pushWith(groups[1], topic, staying.as(""), instance); err != nil {
		return err
	}
	if err := sendToAll(e, topic, "both", 2, 20); err != nil {
		return err
	}
	for _, s := range []*sink{leaving, staying} {
		if err := s.exactlyOnce(numbered("both", 20)); err != nil {
			return err
		}
	}
	if a, b := e.members(groups[0]), e.members(groups[1]); len(a) != 1 || fmt.Sprint(a) != fmt.Sprint(b) {
		return fmt.Errorf("members of the groups: %q and %q, expected the same client", a, b)
	}
	if err := c.Shutdown(); err != nil {
		return err
	}
	leaving.clear()
	staying.clear()
	if err := sendToAll(e, topic, "one", 2, 20); err != nil {
		return err
	}
	if err := staying.exactlyOnce(numbered("one", 20)); err != nil {
		return err
	}
	if msgs, _ := leaving.snapshot(); len(msgs) != 0 {
		return fmt.Errorf("%d messages came to the consumer that left", len(msgs))
	}
	return nil
}

func sendInNamespace(e *env, space, topic string) error {
	p, err := e.newProducer(producer.WithNamespace(space))
	if err != nil {
		return err
	}
	for i := 0; i < 10; i++ {
		m := primitive.NewMessage(topic, []byte(fmt.Sprintf("inside%d", i)))
		if _, err := p.SendSync(context.Background(), m); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	return nil
}

// namespace: topics and groups of a namespace are others than those of the same names without; a unit is told in the
// client id.
func namespace(e *env) error {
	topic, err := e.topic(1)
	if err != nil {
		return err
	}
	space, group := e.name("n"), e.name("g")
	if err := e.createTopic(space+"%"+topic, 1); err != nil {
		return err
	}
	plain, inside := &sink{}, &sink{}
	if _, err := e.pushWith(group, topic, plain.as("")); err != nil {
		return err
	}
	_, err = e.pushWith(group, topic, givingBackOnce(inside), consumer.WithNamespace(space),
		consumer.WithUnitName("unit"))
	if err != nil {
		return err
	}
	if err := sendInNamespace(e, space, topic); err != nil {
		return err
	}
	if err := sendToAll(e, topic, "plain", 1, 10); err != nil {
		return err
	}
	if err := plain.exactlyOnce(numbered("plain", 10)); err != nil {
		return fmt.Errorf("outside: %w", err)
	}
	if err := inside.times(numbered("inside", 10), 2); err != nil {
		return fmt.Errorf("inside: %w", err)
	}
	msgs, _ := inside.snapshot()
	for _, m := range msgs {
		if m.Topic != space+"%"+topic {
			return fmt.Errorf("a message of topic %s", m.Topic)
		}
	}
	ids := e.members(space + "%" + group)
	if len(ids) != 1 || !strings.HasSuffix(ids[0], "@unit") {
		return fmt.Errorf("members of the group in the namespace: %q", ids)
	}
	return nil
}
