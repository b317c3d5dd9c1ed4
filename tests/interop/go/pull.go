package main

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

func (e *env) pullConsumer(group, topic, tags string, options ...consumer.Option) (rocketmq.PullConsumer, error) {
	options = append([]consumer.Option{consumer.WithNsResolver(e.resolver()), consumer.WithGroupName(group),
		consumer.WithInstance(e.name("i"))}, options...)
	c, err := rocketmq.NewPullConsumer(options...)
	if err != nil {
		return nil, err
	}
	if err := c.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: tags}); err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	e.closers = append(e.closers, func() { _ = c.Shutdown() })
	return c, nil
}

// pulled compares what a pull brought.
func pulled(r *primitive.PullResult, err error, status primitive.PullStatus, next int64, bodies ...string) error {
	if err != nil {
		return fmt.Errorf("pull: %w", err)
	}
	var got []string
	for _, m := range r.GetMessageExts() {
		got = append(got, string(m.Body))
	}
	if r.Status != status || r.NextBeginOffset != next || fmt.Sprint(got) != fmt.Sprint(bodies) {
		return fmt.Errorf("pull: status %d, next %d, %v, expected %d, %d, %v", r.Status, r.NextBeginOffset, got, status,
			next, bodies)
	}
	return nil
}

// pull: pulls from an offset bring what is there, wait where nothing is yet, and say what is outside; offsets are
// kept by the broker.
func pull(e *env) error {
	topic, err := e.topic(1)
	if err != nil {
		return err
	}
	if err := sendToAll(e, topic, "n", 1, 10); err != nil {
		return err
	}
	group, ctx := e.name("g"), context.Background()
	c, err := e.pullConsumer(group, topic, "*")
	if err != nil {
		return err
	}
	queue := &primitive.MessageQueue{Topic: topic, BrokerName: e.brokerName(topic), QueueId: 0}
	from := func(offset int64, n int) (*primitive.PullResult, error) { return c.PullFrom(ctx, queue, offset, n) }
	r, err := from(0, 4)
	if err := pulled(r, err, primitive.PullFound, 4, "n0", "n1", "n2", "n3"); err != nil {
		return err
	}
	if r.MinOffset != 0 || r.MaxOffset != 10 {
		return fmt.Errorf("the queue has %d to %d, expected 0 to 10", r.MinOffset, r.MaxOffset)
	}
	r, err = from(8, 32)
	if err := pulled(r, err, primitive.PullFound, 10, "n8", "n9"); err != nil {
		return err
	}
	r, err = from(1000, 32)
	if err := pulled(r, err, primitive.PullOffsetIllegal, 10); err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() {
		time.Sleep(time.Second)
		sent <- sendTo(e, topic, queue.BrokerName, 0, "awaited")
	}()
	began := time.Now()
	r, err = from(10, 32)
	if err := pulled(r, err, primitive.PullFound, 11, "awaited"); err != nil {
		return err
	}
	if err := <-sent; err != nil {
		return err
	}
	if took := time.Since(began); took < 900*time.Millisecond {
		return fmt.Errorf("a pull brought a message %s after its begin, which was sent after a second", took)
	}
	return pullOffsets(e, c, group, queue)
}

// pullOffsets: an offset that is set and persisted is where the group goes on.
func pullOffsets(e *env, c rocketmq.PullConsumer, group string, queue *primitive.MessageQueue) error {
	if err := c.UpdateOffset(queue, 7); err != nil {
		return err
	}
	if at, err := c.CurrentOffset(queue); err != nil || at != 7 {
		return fmt.Errorf("current offset %d, expected 7, error %v", at, err)
	}
	if err := c.PersistOffset(context.Background(), queue.Topic); err != nil {
		return err
	}
	err := until("the broker has the offset 7", func() bool {
		told, err := ask(e.broker, 14, map[string]string{"consumerGroup": group, "topic": queue.Topic, "queueId": "0"})
		return err == nil && told.ExtFields["offset"] == "7"
	})
	if err != nil {
		return err
	}
	r, err := c.Pull(context.Background(), 2)
	return pulled(r, err, primitive.PullFound, 9, "n7", "n8")
}

// pullTags: the tags of the subscription select what pulls bring, and the next offset is behind what they leave out.
func pullTags(e *env) error {
	topic, err := e.topic(1)
	if err != nil {
		return err
	}
	for _, tag := range []string{"TagA", "TagB", "TagA", "TagC", "TagB"} {
		if _, err := e.send(primitive.NewMessage(topic, []byte(tag)).WithTag(tag)); err != nil {
			return err
		}
	}
	c, err := e.pullConsumer(e.name("g"), topic, "TagB || TagC")
	if err != nil {
		return err
	}
	queue := &primitive.MessageQueue{Topic: topic, BrokerName: e.brokerName(topic), QueueId: 0}
	r, err := c.PullFrom(context.Background(), queue, 0, 32)
	return pulled(r, err, primitive.PullFound, 5, "TagB", "TagC", "TagB")
}

// pollAll polls and acknowledges until the bodies came; what comes more than once, or is not wanted, is an error.
func pollAll(c rocketmq.PullConsumer, want map[string]bool) error {
	got := map[string]bool{}
	poll := func(timeout time.Duration) error {
		r, err := c.Poll(context.Background(), timeout)
		if err == consumer.ErrNoNewMsg {
			return nil
		}
		if err != nil {
			return fmt.Errorf("poll: %w", err)
		}
		for _, m := range r.GetMsgList() {
			if body := string(m.Body); !want[body] || got[body] {
				return fmt.Errorf("polled %s, wanted %v, had %v", body, want[body], got[body])
			}
			got[string(m.Body)] = true
		}
		c.ACK(context.Background(), r, consumer.ConsumeSuccess)
		return nil
	}
	for end := time.Now().Add(deadline); len(got) < len(want); {
		if time.Now().After(end) {
			return fmt.Errorf("polled %d of %d messages", len(got), len(want))
		}
		if err := poll(time.Second); err != nil {
			return err
		}
	}
	return poll(quiet)
}

// poll: polls bring each message once, the next consumer of the group goes on after what was acknowledged, and what
// is given back is a dead letter at once: this client's polls retry 0 times unless told otherwise.
func poll(e *env) error {
	topic, err := e.topic(4)
	if err != nil {
		return err
	}
	if err := sendToAll(e, topic, "one", 4, 100); err != nil {
		return err
	}
	group := e.name("g")
	c, err := e.pullConsumer(group, topic, "*", consumer.WithPullBatchSize(32))
	if err != nil {
		return err
	}
	if err := pollAll(c, numbered("one", 100)); err != nil {
		return err
	}
	if err := e.awaitCommitted(topic, group); err != nil {
		return err
	}
	if err := c.Shutdown(); err != nil {
		return err
	}
	if err := sendToAll(e, topic, "two", 4, 100); err != nil {
		return err
	}
	c, err = e.pullConsumer(group, topic, "*") // 0 messages per pull, as it is when nobody says how many
	if err != nil {
		return err
	}
	if err := pollAll(c, numbered("two", 100)); err != nil {
		return err
	}
	return pollGiveBack(e, c, group, topic)
}

func pollGiveBack(e *env, c rocketmq.PullConsumer, group, topic string) error {
	if err := sendTo(e, topic, e.brokerName(topic), 0, "refused"); err != nil {
		return err
	}
	var r *consumer.ConsumeRequest
	err := until("one more message", func() bool {
		var err error
		r, err = c.Poll(context.Background(), time.Second)
		return err == nil
	})
	if err != nil {
		return err
	}
	c.ACK(context.Background(), r, consumer.ConsumeRetryLater)
	dead, err := e.deadLetters(group)
	if err != nil {
		return err
	}
	return dead.exactlyOnce(map[string]bool{"refused": true})
}

// pollRetry: what is given back comes again from the retry topic, counted, until it is taken.
func pollRetry(e *env) error {
	topic, err := e.topic(1)
	if err != nil {
		return err
	}
	c, err := e.pullConsumer(e.name("g"), topic, "*", consumer.WithMaxReconsumeTimes(3))
	if err != nil {
		return err
	}
	r, err := e.send(primitive.NewMessage(topic, []byte("again")))
	if err != nil {
		return err
	}
	var got []string
	err = until("a second delivery", func() bool {
		polled, err := c.Poll(context.Background(), time.Second)
		if err != nil {
			return false
		}
		result := consumer.ConsumeRetryLater
		for _, m := range polled.GetMsgList() {
			got = append(got, fmt.Sprint(string(m.Body), m.ReconsumeTimes, m.MsgId, m.GetProperty(primitive.PropertyRetryTopic)))
			if m.ReconsumeTimes > 0 {
				result = consumer.ConsumeSuccess
			}
		}
		c.ACK(context.Background(), polled, result)
		return result == consumer.ConsumeSuccess
	})
	want := []string{fmt.Sprint("again", 0, r.MsgID, ""), fmt.Sprint("again", 1, r.MsgID, topic)}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("polled %q, expected %q, error %v", got, want, err)
	}
	if more, err := c.Poll(context.Background(), 2*quiet); err != consumer.ErrNoNewMsg {
		return fmt.Errorf("one more poll after the message was taken: %v %v", more, err)
	}
	return nil
}
