package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// answering replies to each request with its body in capitals, and not at all to "silence". It returns what tells the
// last reply that failed.
func answering(e *env, topic string) (func() any, error) {
	p, err := e.newProducer()
	if err != nil {
		return nil, err
	}
	var failure atomic.Value
	_, err = e.pushWith(e.name("g"), topic, func(_ context.Context, msgs []*primitive.MessageExt) consumer.ConsumeResult {
		for _, m := range msgs {
			if string(m.Body) == "silence" {
				continue
			}
			reply, err := consumer.CreateReplyMessage(m, nil)
			if err != nil {
				failure.Store(err.Error())
				continue
			}
			reply.Body = []byte(strings.ToUpper(string(m.Body))) // the client takes its argument for properties
			reply.WithProperty("mine", "of "+string(m.Body))
			if _, err := p.SendSync(context.Background(), reply); err != nil {
				failure.Store(err.Error())
			}
		}
		return consumer.ConsumeSuccess
	})
	return failure.Load, err
}

func checkReply(m *primitive.Message, body string) error {
	if string(m.Body) != strings.ToUpper(body) || m.GetProperty("mine") != "of "+body {
		return fmt.Errorf("reply %q with %q to %s", m.Body, m.GetProperty("mine"), body)
	}
	return nil
}

// request: a request gets its own reply, waiting or by callback; without a reply it ends after its time.
func request(e *env) error {
	topic, err := e.topic(2)
	if err != nil {
		return err
	}
	failedReply, err := answering(e, topic)
	if err != nil {
		return err
	}
	producers := e.name("p")
	p, err := e.newProducer(producer.WithGroupName(producers))
	if err != nil {
		return err
	}
	e.producer = p
	// A request to a topic that is there brings no heartbeat, and so no way for the reply: that of the start does.
	if _, err := e.send(primitive.NewMessage(topic, []byte("silence"))); err != nil {
		return err
	}
	err = until("the broker knows the producer", func() bool {
		_, err := ask(e.broker, 204, map[string]string{"producerGroup": producers})
		return err == nil
	})
	if err != nil {
		return err
	}
	ctx := context.Background()
	for i := 0; i < 10; i++ {
		body := fmt.Sprintf("request%d", i)
		m, err := p.Request(ctx, 30*time.Second, primitive.NewMessage(topic, []byte(body)))
		if err != nil {
			return fmt.Errorf("request: %w, a reply that failed: %v", err, failedReply())
		}
		if err := checkReply(m, body); err != nil {
			return err
		}
	}
	began := time.Now()
	m, err := p.Request(ctx, 2*time.Second, primitive.NewMessage(topic, []byte("silence")))
	if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "timeout") || took < 2*time.Second {
		return fmt.Errorf("nobody replied: %v, error %v after %s", m, err, took)
	}
	return requestAsync(e, topic)
}

func requestAsync(e *env, topic string) error {
	var mu sync.Mutex
	replied, bad := map[string]bool{}, error(nil)
	for i := 0; i < 10; i++ {
		body := fmt.Sprintf("async%d", i)
		err := e.producer.RequestAsync(context.Background(), 30*time.Second,
			func(_ context.Context, m *primitive.Message, err error) {
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					err = checkReply(m, body)
				}
				if err != nil {
					bad = err
				}
				replied[body] = true
			}, primitive.NewMessage(topic, []byte(body)))
		if err != nil {
			return fmt.Errorf("request: %w", err)
		}
	}
	err := until("ten replies", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(replied) == 10
	})
	if err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	return bad
}
