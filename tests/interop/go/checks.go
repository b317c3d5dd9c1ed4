package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// createTopic: a topic is in the list of topics until it is deleted.
func createTopic(e *env) error {
	topic, err := e.topic(3)
	if err != nil {
		return err
	}
	listed := func() (bool, error) {
		l, err := e.admin.FetchAllTopicList(context.Background())
		if err != nil {
			return false, fmt.Errorf("topic list: %w", err)
		}
		return contains(l.TopicList, topic), nil
	}
	if in, err := listed(); err != nil || !in {
		return fmt.Errorf("new topic not in the list of topics, error %v", err)
	}
	err = e.admin.DeleteTopic(context.Background(), admin.WithTopicDelete(topic),
		admin.WithBrokerAddrDelete(e.broker), admin.WithNameSrvAddr([]string{e.namesrv}))
	if err != nil {
		return fmt.Errorf("delete topic: %w", err)
	}
	return until("the deleted topic leaves the list", func() bool {
		in, err := listed()
		return err == nil && !in
	})
}

// sendSync: results have ids and dense queue offsets, and the consumer sees the same ids.
func sendSync(e *env) error {
	topic, err := e.topic(4)
	if err != nil {
		return err
	}
	ids := map[string]string{}
	next := map[int]int64{}
	for i := 0; i < 40; i++ {
		body := fmt.Sprintf("s%d", i)
		r, err := e.send(primitive.NewMessage(topic, []byte(body)))
		if err != nil {
			return err
		}
		if r.QueueOffset != next[r.MessageQueue.QueueId] {
			return fmt.Errorf("queue offset %d of queue %d, expected %d", r.QueueOffset, r.MessageQueue.QueueId,
				next[r.MessageQueue.QueueId])
		}
		next[r.MessageQueue.QueueId]++
		ids[body] = r.MsgID
	}
	s := &sink{}
	if _, err := e.push(e.name("g"), topic, "*", false, s.as("")); err != nil {
		return err
	}
	if err := s.exactlyOnce(numbered("s", 40)); err != nil {
		return err
	}
	msgs, _ := s.snapshot()
	for _, m := range msgs {
		if m.MsgId != ids[string(m.Body)] {
			return fmt.Errorf("message id %s, the send returned %s", m.MsgId, ids[string(m.Body)])
		}
	}
	return nil
}

func sendAsync(e *env) error {
	topic, err := e.topic(4)
	if err != nil {
		return err
	}
	p, err := e.theProducer(false)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	answered, bad := 0, ""
	window := make(chan struct{}, 16)
	for i := 0; i < 100; i++ {
		window <- struct{}{}
		err := p.SendAsync(context.Background(), func(_ context.Context, r *primitive.SendResult, err error) {
			mu.Lock()
			defer mu.Unlock()
			answered++
			if err != nil {
				bad = err.Error()
			} else if r.Status != primitive.SendOK {
				bad = fmt.Sprintf("send status %d", r.Status)
			}
			<-window
		}, primitive.NewMessage(topic, []byte(fmt.Sprintf("a%d", i))))
		if err != nil {
			return err
		}
	}
	err = until("100 answers", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return answered == 100
	})
	if err != nil {
		return err
	}
	if bad != "" {
		return fmt.Errorf("a send failed: %s", bad)
	}
	s := &sink{}
	if _, err := e.push(e.name("g"), topic, "*", false, s.as("")); err != nil {
		return err
	}
	return s.exactlyOnce(numbered("a", 100))
}

func sendOneway(e *env) error {
	topic, err := e.topic(4)
	if err != nil {
		return err
	}
	p, err := e.theProducer(false)
	if err != nil {
		return err
	}
	for i := 0; i < 100; i++ {
		if err := p.SendOneWay(context.Background(), primitive.NewMessage(topic, []byte(fmt.Sprintf("o%d", i)))); err != nil {
			return err
		}
	}
	s := &sink{}
	if _, err := e.push(e.name("g"), topic, "*", false, s.as("")); err != nil {
		return err
	}
	return s.exactlyOnce(numbered("o", 100))
}

// sendContent: keys, tag, properties and bodies, small, compressed, binary, are kept.
func sendContent(e *env) error {
	topic, err := e.topic(1)
	if err != nil {
		return err
	}
	bodies := map[string][]byte{
		"one":   {0},
		"zeros": make([]byte, 100000),
		"text":  bytes.Repeat([]byte("0123456789 "), 20000),
		"utf8":  []byte("grün 漢字"),
	}
	for key, body := range bodies {
		m := primitive.NewMessage(topic, body).WithTag("täg").WithKeys([]string{key})
		m.WithProperty("mine", "of "+key)
		if _, err := e.send(m); err != nil {
			return err
		}
	}
	s := &sink{}
	if _, err := e.push(e.name("g"), topic, "*", false, s.as("")); err != nil {
		return err
	}
	err = until("all messages", func() bool {
		msgs, _ := s.snapshot()
		return len(msgs) >= len(bodies)
	})
	if err != nil {
		return err
	}
	time.Sleep(quiet)
	msgs, _ := s.snapshot()
	if len(msgs) != len(bodies) {
		return fmt.Errorf("%d messages, expected %d", len(msgs), len(bodies))
	}
	for _, m := range msgs {
		key := m.GetKeys()
		if !bytes.Equal(m.Body, bodies[key]) {
			return fmt.Errorf("body of %q changed: %d bytes, expected %d", key, len(m.Body), len(bodies[key]))
		}
		if m.GetTags() != "täg" || m.GetProperty("mine") != "of "+key {
			return fmt.Errorf("tag or property of %q changed: %q %q", key, m.GetTags(), m.GetProperty("mine"))
		}
	}
	return nil
}

// sendTo sends one message to a queue.
func sendTo(e *env, topic, broker string, queue int, body string) error {
	m := primitive.NewMessage(topic, []byte(body))
	m.Queue = &primitive.MessageQueue{Topic: topic, BrokerName: broker, QueueId: queue}
	_, err := e.send(m)
	return err
}

// sendToAll sends n messages round the queues of a topic.
func sendToAll(e *env, topic, prefix string, queues, n int) error {
	broker := e.brokerName(topic)
	for i := 0; i < n; i++ {
		if err := sendTo(e, topic, broker, i%queues, fmt.Sprintf("%s%d", prefix, i)); err != nil {
			return err
		}
	}
	return nil
}

func (e *env) brokerName(topic string) string {
	a, err := e.theAdmin()
	if err != nil {
		return ""
	}
	mqs, err := a.FetchPublishMessageQueues(context.Background(), topic)
	if err != nil || len(mqs) == 0 {
		return ""
	}
	return mqs[0].BrokerName
}

// pushShared: two consumers of a group take four of eight queues each, and each message comes once.
func pushShared(e *env) error {
	topic, err := e.topic(8)
	if err != nil {
		return err
	}
	group := e.name("g")
	s := &sink{}
	for _, who := range []string{"a", "b"} {
		if _, err := e.push(group, topic, "*", false, s.as(who)); err != nil {
			return err
		}
	}
	// The client does not tell its queues: probe each queue until both consumers take four of them.
	settled := func() bool {
		s.clear()
		if sendToAll(e, topic, "probe", 8, 8) != nil || s.exactlyOnce(numbered("probe", 8)) != nil {
			return false
		}
		_, by := s.snapshot()
		n := 0
		for _, who := range by {
			if who == "a" {
				n++
			}
		}
		return n == 4
	}
	if err := until("both consumers take four queues", settled); err != nil {
		return err
	}
	s.clear()
	if err := sendToAll(e, topic, "m", 8, 200); err != nil {
		return err
	}
	return s.exactlyOnce(numbered("m", 200))
}

func tags(e *env) error {
	topic, err := e.topic(2)
	if err != nil {
		return err
	}
	want := map[string]bool{}
	for i := 0; i < 20; i++ {
		for _, tag := range []string{"TagA", "TagB", "TagC"} {
			body := fmt.Sprintf("%s%d", tag, i)
			if tag != "TagC" {
				want[body] = true
			}
			if _, err := e.send(primitive.NewMessage(topic, []byte(body)).WithTag(tag)); err != nil {
				return err
			}
		}
	}
	s := &sink{}
	if _, err := e.push(e.name("g"), topic, "TagA || TagB", false, s.as("")); err != nil {
		return err
	}
	return s.exactlyOnce(want)
}

// orderly: an ordered consumer gets the messages of each queue in their order.
func orderly(e *env) error {
	topic, err := e.topic(4)
	if err != nil {
		return err
	}
	s := &sink{}
	if _, err := e.push(e.name("g"), topic, "*", true, s.as("")); err != nil {
		return err
	}
	if err := sendToAll(e, topic, "n", 4, 100); err != nil {
		return err
	}
	if err := s.exactlyOnce(numbered("n", 100)); err != nil {
		return err
	}
	msgs, _ := s.snapshot()
	next := map[int]int64{}
	for _, m := range msgs {
		q := m.Queue.QueueId
		if m.QueueOffset != next[q] || string(m.Body) != fmt.Sprintf("n%d", int(next[q])*4+q) {
			return fmt.Errorf("queue %d: %s at offset %d came when %d was next", q, m.Body, m.QueueOffset, next[q])
		}
		next[q]++
	}
	return nil
}

// retry: ConsumeRetryLater brings the message again, counted.
func retry(e *env) error {
	topic, err := e.topic(1)
	if err != nil {
		return err
	}
	s := &sink{}
	keep := s.as("")
	_, err = e.push(e.name("g"), topic, "*", false,
		func(ctx context.Context, msgs []*primitive.MessageExt) consumer.ConsumeResult {
			keep(ctx, msgs)
			if c, ok := primitive.GetConcurrentlyCtx(ctx); ok {
				c.DelayLevelWhenNextConsume = 1
			}
			if msgs[0].ReconsumeTimes == 0 {
				return consumer.ConsumeRetryLater
			}
			return consumer.ConsumeSuccess
		})
	if err != nil {
		return err
	}
	if _, err := e.send(primitive.NewMessage(topic, []byte("again")).WithKeys([]string{"key"})); err != nil {
		return err
	}
	err = until("a second delivery", func() bool {
		msgs, _ := s.snapshot()
		return len(msgs) >= 2
	})
	if err != nil {
		return err
	}
	time.Sleep(quiet)
	msgs, _ := s.snapshot()
	if len(msgs) != 2 {
		return fmt.Errorf("%d deliveries, expected 2", len(msgs))
	}
	m := msgs[1]
	if m.ReconsumeTimes != 1 || m.Topic != topic || m.GetKeys() != "key" || string(m.Body) != "again" {
		return fmt.Errorf("second delivery: times %d, topic %s, keys %q, body %q", m.ReconsumeTimes, m.Topic,
			m.GetKeys(), m.Body)
	}
	return nil
}

// offsetPersistence: what was consumed before a shutdown does not come again to the next consumer.
func offsetPersistence(e *env) error {
	topic, err := e.topic(2)
	if err != nil {
		return err
	}
	group := e.name("g")
	first := &sink{}
	c, err := e.push(group, topic, "*", false, first.as(""))
	if err != nil {
		return err
	}
	if err := sendToAll(e, topic, "one", 2, 20); err != nil {
		return err
	}
	if err := first.exactlyOnce(numbered("one", 20)); err != nil {
		return err
	}
	if err := c.Shutdown(); err != nil {
		return err
	}
	if err := sendToAll(e, topic, "two", 2, 20); err != nil {
		return err
	}
	second := &sink{}
	if _, err := e.push(group, topic, "*", false, second.as("")); err != nil {
		return err
	}
	return second.exactlyOnce(numbered("two", 20))
}
