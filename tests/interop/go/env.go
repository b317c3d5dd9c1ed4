package main

import (
	"context"
	"fmt"
	"math/rand"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const (
	deadline = 90 * time.Second
	quiet    = 1500 * time.Millisecond // nothing more may come for this long before "exactly once" is believed
)

// env is what a check works with: names of its own, and clients that are closed after it.
type env struct {
	namesrv, broker, check string
	random                 string
	next                   int
	closers                []func()
	admin                  admin.Admin
	producer               rocketmq.Producer
}

func newEnv(namesrv, broker, check string) *env {
	r := rand.New(rand.NewSource(time.Now().UnixNano()))
	return &env{namesrv: namesrv, broker: broker, check: check, random: fmt.Sprintf("%08x", r.Uint32())}
}

func (e *env) close() {
	for i := len(e.closers) - 1; i >= 0; i-- {
		e.closers[i]()
	}
}

func (e *env) name(kind string) string {
	e.next++
	return fmt.Sprintf("%s_%s_%s_%d", kind, e.check, e.random, e.next)
}

func (e *env) resolver() primitive.NsResolver {
	return primitive.NewPassthroughResolver([]string{e.namesrv})
}

func (e *env) theAdmin() (admin.Admin, error) {
	if e.admin == nil {
		a, err := admin.NewAdmin(admin.WithResolver(e.resolver()))
		if err != nil {
			return nil, err
		}
		e.admin = a
		e.closers = append(e.closers, func() { _ = a.Close() })
	}
	return e.admin, nil
}

// topic creates a topic at the broker and waits until the name server has its route.
func (e *env) topic(queues int) (string, error) {
	topic := e.name("t")
	a, err := e.theAdmin()
	if err != nil {
		return "", err
	}
	err = a.CreateTopic(context.Background(), admin.WithTopicCreate(topic), admin.WithBrokerAddrCreate(e.broker),
		admin.WithReadQueueNums(queues), admin.WithWriteQueueNums(queues))
	if err != nil {
		return "", fmt.Errorf("create topic: %w", err)
	}
	return topic, until(fmt.Sprintf("a route of %s with %d queues", topic, queues), func() bool {
		mqs, err := a.FetchPublishMessageQueues(context.Background(), topic)
		return err == nil && len(mqs) == queues
	})
}

// theProducer sends to the queue that each message names when it was given manual = true at the first call.
func (e *env) theProducer(manual bool) (rocketmq.Producer, error) {
	if e.producer != nil {
		return e.producer, nil
	}
	opts := []producer.Option{producer.WithNsResolver(e.resolver()), producer.WithGroupName(e.name("p")),
		producer.WithInstanceName(e.name("i")), producer.WithRetry(2), producer.WithSendMsgTimeout(10 * time.Second)}
	if manual {
		opts = append(opts, producer.WithQueueSelector(producer.NewManualQueueSelector()))
	}
	p, err := rocketmq.NewProducer(opts...)
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	e.producer = p
	e.closers = append(e.closers, func() { _ = p.Shutdown() })
	return p, nil
}

// send sends synchronously; a busy answer (nothing stored) is tried again.
func (e *env) send(m *primitive.Message) (*primitive.SendResult, error) {
	p, err := e.theProducer(m.Queue != nil)
	if err != nil {
		return nil, err
	}
	r, err := p.SendSync(context.Background(), m)
	if err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	if r.Status != primitive.SendOK {
		return nil, fmt.Errorf("send status %d", r.Status)
	}
	return r, nil
}

func (e *env) push(group, topic, tags string, order bool,
	f func(ctx context.Context, msgs []*primitive.MessageExt) consumer.ConsumeResult) (rocketmq.PushConsumer, error) {
	return e.pushBy(group, topic, consumer.MessageSelector{Type: consumer.TAG, Expression: tags}, order, f)
}

func (e *env) pushBy(group, topic string, selector consumer.MessageSelector, order bool,
	f func(ctx context.Context, msgs []*primitive.MessageExt) consumer.ConsumeResult) (rocketmq.PushConsumer, error) {
	c, err := rocketmq.NewPushConsumer(consumer.WithNsResolver(e.resolver()), consumer.WithGroupName(group),
		consumer.WithInstance(e.name("i")), consumer.WithConsumerModel(consumer.Clustering),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithConsumerOrder(order))
	if err != nil {
		return nil, err
	}
	err = c.Subscribe(topic, selector,
		func(ctx context.Context, msgs ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			return f(ctx, msgs), nil
		})
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	e.closers = append(e.closers, func() { _ = c.Shutdown() })
	return c, nil
}

// sink keeps what consumers got.
type sink struct {
	mu   sync.Mutex
	msgs []*primitive.MessageExt
	by   []string // who got msgs[i]
}

func (s *sink) as(who string) func(context.Context, []*primitive.MessageExt) consumer.ConsumeResult {
	return func(_ context.Context, msgs []*primitive.MessageExt) consumer.ConsumeResult {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, m := range msgs {
			s.msgs = append(s.msgs, m)
			s.by = append(s.by, who)
		}
		return consumer.ConsumeSuccess
	}
}

func (s *sink) snapshot() ([]*primitive.MessageExt, []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*primitive.MessageExt(nil), s.msgs...), append([]string(nil), s.by...)
}

func (s *sink) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.msgs, s.by = nil, nil
}

// exactlyOnce waits for the bodies, then a quiet while: each came once and nothing else did.
func (s *sink) exactlyOnce(want map[string]bool) error {
	distinct := func() map[string]int {
		msgs, _ := s.snapshot()
		d := map[string]int{}
		for _, m := range msgs {
			d[string(m.Body)]++
		}
		return d
	}
	err := until("", func() bool { return len(distinct()) >= len(want) })
	if err != nil {
		return fmt.Errorf("received %d of %d messages", len(distinct()), len(want))
	}
	time.Sleep(quiet)
	for body, n := range distinct() {
		if !want[body] {
			return fmt.Errorf("received a message that was not sent to it: %.40s", body)
		}
		if n != 1 {
			return fmt.Errorf("received %d times: %.40s", n, body)
		}
	}
	return nil
}

func numbered(prefix string, n int) map[string]bool {
	m := map[string]bool{}
	for i := 0; i < n; i++ {
		m[fmt.Sprintf("%s%d", prefix, i)] = true
	}
	return m
}

func until(what string, f func() bool) error {
	end := time.Now().Add(deadline)
	for !f() {
		if time.Now().After(end) {
			return fmt.Errorf("not within %s: %s", deadline, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}
