package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const traceTopic = "RMQ_SYS_TRACE_TOPIC"

// traces reads the records of the topic for traces that name a message.
type traces struct {
	mu      sync.Mutex
	records map[string][]string // by kind: Pub, SubBefore, SubAfter
}

func (t *traces) read(id string) listener {
	return func(_ context.Context, msgs []*primitive.MessageExt) consumer.ConsumeResult {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, m := range msgs {
			for _, record := range strings.Split(string(m.Body), "\x02") {
				if fields := strings.Split(record, "\x01"); strings.Contains(record, id) {
					t.records[fields[0]] = fields
				}
			}
		}
		return consumer.ConsumeSuccess
	}
}

func (t *traces) kinds() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.records)
}

// trace: producer and consumer tell of a message in the topic for traces, and what they tell is right.
func trace(e *env) error {
	topic, err := e.topic(1)
	if err != nil {
		return err
	}
	// The client looks for a route of the topic, but does not have it created.
	if _, err := e.send(primitive.NewMessage(traceTopic, []byte("none"))); err != nil {
		return err
	}
	if err := e.awaitRoute(traceTopic, 0); err != nil {
		return err
	}
	config := &primitive.TraceConfig{GroupName: e.name("tg"), Access: primitive.Local, Resolver: e.resolver()}
	producers, group := e.name("p"), e.name("g")
	p, err := e.newProducer(producer.WithTrace(config), producer.WithGroupName(producers))
	if err != nil {
		return err
	}
	s := &sink{}
	if _, err := e.pushWith(group, topic, s.as(""), consumer.WithTrace(config)); err != nil {
		return err
	}
	r, err := p.SendSync(context.Background(), primitive.NewMessage(topic, []byte("traced")).WithKeys([]string{"key"}))
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if err := s.exactlyOnce(map[string]bool{"traced": true}); err != nil {
		return err
	}
	t := &traces{records: map[string][]string{}}
	if _, err := e.pushWith(e.name("g"), traceTopic, t.read(r.MsgID)); err != nil {
		return err
	}
	if err := until("traces of the send and the consumption", func() bool { return t.kinds() == 3 }); err != nil {
		return fmt.Errorf("%w: %q", err, t.records)
	}
	return t.check(map[string]map[int]string{
		"Pub": {2: "DefaultRegion", 3: producers, 4: topic, 5: r.MsgID, 7: "key", 8: e.broker, 9: "6", 12: r.OffsetMsgID,
			13: "true"},
		"SubBefore": {2: "DefaultRegion", 3: group, 5: r.MsgID, 6: "0", 7: "key"},
		"SubAfter":  {2: r.MsgID, 4: "true", 5: "key", 6: "0", 8: group},
	})
}

func (t *traces) check(want map[string]map[int]string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for kind, fields := range want {
		for i, value := range fields {
			if got := t.records[kind]; i >= len(got) || got[i] != value {
				return fmt.Errorf("field %d of %s is not %s: %q", i, kind, value, got)
			}
		}
	}
	return nil
}
