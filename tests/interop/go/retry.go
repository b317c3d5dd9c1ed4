package main

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// giveBack wants a message again after a level of delay; -1 makes it a dead letter.
func giveBack(ctx context.Context, level int) consumer.ConsumeResult {
	if c, ok := primitive.GetConcurrentlyCtx(ctx); ok {
		c.DelayLevelWhenNextConsume = level
	}
	return consumer.ConsumeRetryLater
}

// givingBackOnce keeps what comes and gives each message back the first time.
func givingBackOnce(s *sink) listener {
	keep := s.as("")
	return func(ctx context.Context, msgs []*primitive.MessageExt) consumer.ConsumeResult {
		if result := keep(ctx, msgs); msgs[0].ReconsumeTimes > 0 {
			return result
		}
		return giveBack(ctx, 1)
	}
}

// deadLetters consumes the dead letters of a group, once there are some.
func (e *env) deadLetters(group string) (*sink, error) {
	if err := e.awaitRoute("%DLQ%"+group, 1); err != nil {
		return nil, err
	}
	s := &sink{}
	_, err := e.pushWith(e.name("g"), "%DLQ%"+group, s.as(""))
	return s, err
}

// checkDelivered: the bodies came in this order, each with these reconsume times, all of this topic.
func checkDelivered(s *sink, topic string, bodies []string, times []int32) error {
	msgs, _ := s.snapshot()
	if len(msgs) != len(bodies) {
		return fmt.Errorf("%d deliveries, expected %d", len(msgs), len(bodies))
	}
	for i, m := range msgs {
		if string(m.Body) != bodies[i] || m.ReconsumeTimes != times[i] || m.Topic != topic {
			return fmt.Errorf("delivery %d: %s of %s with reconsume times %d, expected %s with %d", i, m.Body, m.Topic,
				m.ReconsumeTimes, bodies[i], times[i])
		}
	}
	return nil
}

// deadLetter: after its times a message is a dead letter, with all that it had and where it was from, and does not
// come again; a delay level of -1 makes it one at once.
func deadLetter(e *env) error {
	topic, err := e.topic(1)
	if err != nil {
		return err
	}
	group, s := e.name("g"), &sink{}
	keep := s.as("")
	_, err = e.pushWith(group, topic, func(ctx context.Context, msgs []*primitive.MessageExt) consumer.ConsumeResult {
		keep(ctx, msgs)
		return giveBack(ctx, 1)
	}, consumer.WithMaxReconsumeTimes(2))
	if err != nil {
		return err
	}
	m := primitive.NewMessage(topic, []byte("hopeless")).WithTag("tag").WithKeys([]string{"key"})
	m.WithProperty("mine", "kept")
	r, err := e.send(m)
	if err != nil {
		return err
	}
	dead, err := e.deadLetters(group)
	if err != nil {
		return err
	}
	if err := dead.exactlyOnce(map[string]bool{"hopeless": true}); err != nil {
		return err
	}
	if err := checkDelivered(s, topic, []string{"hopeless", "hopeless", "hopeless"}, []int32{0, 1, 2}); err != nil {
		return err
	}
	msgs, _ := dead.snapshot()
	d := msgs[0]
	got := fmt.Sprint(d.MsgId, d.GetTags(), d.GetKeys(), d.GetProperty("mine"), d.ReconsumeTimes,
		d.GetProperty(primitive.PropertyRetryTopic), d.GetProperty(primitive.PropertyOriginMessageId))
	want := fmt.Sprint(r.MsgID, "tag", "key", "kept", 3, topic, r.OffsetMsgID)
	if got != want {
		return fmt.Errorf("dead letter %s, expected %s", got, want)
	}
	return deadAtOnce(e)
}

func deadAtOnce(e *env) error {
	topic, err := e.topic(1)
	if err != nil {
		return err
	}
	group, s := e.name("g"), &sink{}
	keep := s.as("")
	_, err = e.pushWith(group, topic, func(ctx context.Context, msgs []*primitive.MessageExt) consumer.ConsumeResult {
		keep(ctx, msgs)
		return giveBack(ctx, -1)
	})
	if err != nil {
		return err
	}
	if _, err := e.send(primitive.NewMessage(topic, []byte("at once"))); err != nil {
		return err
	}
	dead, err := e.deadLetters(group)
	if err != nil {
		return err
	}
	if err := dead.exactlyOnce(map[string]bool{"at once": true}); err != nil {
		return err
	}
	return checkDelivered(s, topic, []string{"at once"}, []int32{0})
}

// orderlyRetry: a message that is not taken comes again before the next of its queue, until it is a dead letter.
func orderlyRetry(e *env) error {
	topic, err := e.topic(1)
	if err != nil {
		return err
	}
	group, s := e.name("g"), &sink{}
	_, err = e.pushWith(group, topic, func(_ context.Context, msgs []*primitive.MessageExt) consumer.ConsumeResult {
		s.mu.Lock()
		defer s.mu.Unlock()
		// The client counts up in the message itself.
		copied := &primitive.MessageExt{Message: primitive.Message{Topic: msgs[0].Topic, Body: msgs[0].Body},
			ReconsumeTimes: msgs[0].ReconsumeTimes}
		s.msgs, s.by = append(s.msgs, copied), append(s.by, "")
		if string(msgs[0].Body) == "n0" || (string(msgs[0].Body) == "n1" && msgs[0].ReconsumeTimes == 0) {
			return consumer.SuspendCurrentQueueAMoment
		}
		return consumer.ConsumeSuccess
	}, consumer.WithConsumerOrder(true), consumer.WithMaxReconsumeTimes(1),
		consumer.WithSuspendCurrentQueueTimeMillis(500*time.Millisecond))
	if err != nil {
		return err
	}
	if err := sendToAll(e, topic, "n", 1, 3); err != nil {
		return err
	}
	dead, err := e.deadLetters(group)
	if err != nil {
		return err
	}
	if err := dead.exactlyOnce(map[string]bool{"n0": true}); err != nil {
		return err
	}
	err = until("the last of the queue", func() bool {
		msgs, _ := s.snapshot()
		return len(msgs) > 0 && string(msgs[len(msgs)-1].Body) == "n2"
	})
	if err != nil {
		return err
	}
	time.Sleep(quiet)
	return checkDelivered(s, topic, []string{"n0", "n0", "n0", "n1", "n1", "n2"}, []int32{0, 1, 2, 0, 1, 0})
}
