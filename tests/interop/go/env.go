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
	return topic, e.createTopic(topic, queues)
}

func (e *env) createTopic(topic string, queues int) error {
	a, err := e.theAdmin()
	if err != nil {
		return err
	}
	err = a.CreateTopic(context.Background(), admin.WithTopicCreate(topic), admin.WithBrokerAddrCreate(e.broker),
		admin.WithReadQueueNums(queues), admin.WithWriteQueueNums(queues))
	if err != nil {
		return fmt.Errorf("create topic: %w", err)
	}
	return e.awaitRoute(topic, queues)
}

// awaitRoute waits until the name server has a route of a topic, with so many queues unless that is 0.
func (e *env) awaitRoute(topic string, queues int) error {
	return until(fmt.Sprintf("a route of %s with %d queues", topic, queues), func() bool {
		a, err := e.theAdmin()
		if err != nil {
			return false
		}
		mqs, err := a.FetchPublishMessageQueues(context.Background(), topic)
		if err == nil && queues != 0 && len(mqs) != queues {
			e.admin = nil // it keeps the first route that it sees
		}
		return err == nil && len(mqs) > 0 && (queues == 0 || len(mqs) == queues)
	})
}

// note tells what is not judged.
func (e *env) note(format string, args ...any) {
	fmt.Printf("# %s: %s\n", e.check, fmt.Sprintf(format, args...))
}

// theProducer sends to the queue that each message names when it was given manual = true at the first call.
func (e *env) theProducer(manual bool) (rocketmq.Producer, error) {
	if e.producer != nil {
		return e.producer, nil
	}
	var options []producer.Option
	if manual {
		options = append(options, producer.WithQueueSelector(producer.NewManualQueueSelector()))
	}
	p, err := e.newProducer(options...)
	e.producer = p
	return p, err
}

func (e *env) newProducer(options ...producer.Option) (rocketmq.Producer, error) {
	options = append([]producer.Option{producer.WithNsResolver(e.resolver()), producer.WithGroupName(e.name("p")),
		producer.WithInstanceName(e.name("i")), producer.WithRetry(2),
		producer.WithSendMsgTimeout(10 * time.Second)}, options...)
	p, err := rocketmq.NewProducer(options...)
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
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

type listener = func(ctx context.Context, msgs []*primitive.MessageExt) consumer.ConsumeResult

func (e *env) push(group, topic, tags string, order bool, f listener) (rocketmq.PushConsumer, error) {
	return e.pushBy(group, topic, consumer.MessageSelector{Type: consumer.TAG, Expression: tags}, order, f)
}

func (e *env) pushBy(group, topic string, selector consumer.MessageSelector, order bool,
	f listener) (rocketmq.PushConsumer, error) {
	return e.consume(group, topic, selector, f, consumer.WithConsumerOrder(order))
}

// pushWith consumes all messages, from the first on unless the options say otherwise.
func (e *env) pushWith(group, topic string, f listener, options ...consumer.Option) (rocketmq.PushConsumer, error) {
	return e.consume(group, topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}, f, options...)
}

func (e *env) consume(group, topic string, selector consumer.MessageSelector, f listener,
	options ...consumer.Option) (rocketmq.PushConsumer, error) {
	options = append([]consumer.Option{consumer.WithNsResolver(e.resolver()), consumer.WithGroupName(group),
		consumer.WithInstance(e.name("i")), consumer.WithConsumerModel(consumer.Clustering),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset)}, options...)
	c, err := rocketmq.NewPushConsumer(options...)
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

// all are the bodies that a sink has to get.
func all(sets ...map[string]bool) map[string]bool {
	union := map[string]bool{}
	for _, set := range sets {
		for body := range set {
			union[body] = true
		}
	}
	return union
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
func (s *sink) exactlyOnce(want map[string]bool) error { return s.times(want, 1) }

// times waits for the bodies, then a quiet while: each came so many times and nothing else did.
func (s *sink) times(want map[string]bool, times int) error {
	distinct := func() map[string]int {
		msgs, _ := s.snapshot()
		d := map[string]int{}
		for _, m := range msgs {
			d[string(m.Body)]++
		}
		return d
	}
	err := until("", func() bool {
		msgs, _ := s.snapshot()
		return len(distinct()) >= len(want) && len(msgs) >= len(want)*times
	})
	if err != nil {
		msgs, _ := s.snapshot()
		return fmt.Errorf("received %d of %d messages in %d of %d deliveries", len(distinct()), len(want), len(msgs),
			len(want)*times)
	}
	time.Sleep(quiet)
	for body, n := range distinct() {
		if !want[body] {
			return fmt.Errorf("received a message that was not sent to it: %.40s", body)
		}
		if n != times {
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
