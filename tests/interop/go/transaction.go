package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// local ends transactions by their bodies: commit..., rollback..., and later..., which is committed when asked.
type local struct {
	mu    sync.Mutex
	asked map[string]int
}

func (l *local) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	switch {
	case strings.HasPrefix(string(m.Body), "commit"):
		return primitive.CommitMessageState
	case strings.HasPrefix(string(m.Body), "rollback"):
		return primitive.RollbackMessageState
	}
	return primitive.UnknowState
}

func (l *local) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[string(m.Body)]++
	return primitive.CommitMessageState
}

// transaction: what is committed at once or when the broker asks comes once, what is rolled back never.
func transaction(e *env) error {
	topic, err := e.topic(4)
	if err != nil {
		return err
	}
	s := &sink{}
	if _, err := e.push(e.name("g"), topic, "*", false, s.as("")); err != nil {
		return err
	}
	l := &local{asked: map[string]int{}}
	p, err := rocketmq.NewTransactionProducer(l, producer.WithNsResolver(e.resolver()),
		producer.WithGroupName(e.name("p")), producer.WithInstanceName(e.name("i")), producer.WithRetry(1),
		producer.WithSendMsgTimeout(10*time.Second))
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	e.closers = append(e.closers, func() { _ = p.Shutdown() })
	want := map[string]bool{}
	for i := 0; i < 5; i++ {
		for _, kind := range []string{"commit", "rollback", "later"} {
			body := fmt.Sprintf("%s%d", kind, i)
			if _, err := p.SendMessageInTransaction(context.Background(), primitive.NewMessage(topic, []byte(body))); err != nil {
				return fmt.Errorf("send: %w", err)
			}
			if kind != "rollback" {
				want[body] = true
			}
		}
	}
	if err := s.exactlyOnce(want); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for body := range l.asked {
		if !strings.HasPrefix(body, "later") {
			return fmt.Errorf("asked about %s, which had ended", body)
		}
	}
	return nil
}
