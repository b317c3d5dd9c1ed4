package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"strings"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// stored is a message as the broker has it (VIEW_MESSAGE_BY_ID).
func (e *env) stored(id string) (*primitive.MessageExt, error) {
	if len(id) != 32 {
		return nil, fmt.Errorf("%q is no message id", id)
	}
	var offset uint64
	if _, err := fmt.Sscanf(id[16:], "%x", &offset); err != nil {
		return nil, err
	}
	told, err := ask(e.broker, 33, map[string]string{"offset": fmt.Sprint(offset)})
	if err != nil {
		return nil, err
	}
	msgs := primitive.DecodeMessage(told.body)
	if len(msgs) != 1 {
		return nil, fmt.Errorf("%d messages for one id", len(msgs))
	}
	return msgs[0], nil
}

// compressed: a body from the threshold on is stored as the client compressed it, a shorter one as it is, and both
// are read as they were sent; a delay and a way back through a retry topic keep it so.
func compressed(e *env) error {
	topic, err := e.topic(1)
	if err != nil {
		return err
	}
	p, err := e.newProducer(producer.WithCompressMsgBodyOverHowmuch(1000), producer.WithCompressLevel(9))
	if err != nil {
		return err
	}
	noise := make([]byte, 5000)
	rand.New(rand.NewSource(1)).Read(noise)
	bodies := map[string][]byte{"short": bytes.Repeat([]byte("s"), 999), "threshold": bytes.Repeat([]byte("t"), 1000),
		"long": bytes.Repeat([]byte("long "), 100000), "noise": noise}
	for key, body := range bodies {
		m := primitive.NewMessage(topic, body).WithKeys([]string{key})
		if key == "long" {
			m.WithDelayTimeLevel(1)
		}
		r, err := p.SendSync(context.Background(), m)
		if err != nil {
			return fmt.Errorf("send: %w", err)
		}
		if err := checkStored(e, r.OffsetMsgID, key != "short", body); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	s, want := &sink{}, map[string]bool{}
	for _, body := range bodies {
		want[string(body)] = true
	}
	if _, err := e.pushWith(e.name("g"), topic, givingBackOnce(s)); err != nil {
		return err
	}
	if err := s.times(want, 2); err != nil {
		return err
	}
	msgs, _ := s.snapshot()
	for _, m := range msgs {
		if err := checkStored(e, m.OffsetMsgId, m.GetKeys() != "short", bodies[m.GetKeys()]); err != nil {
			return fmt.Errorf("%s, delivery %d: %w", m.GetKeys(), m.ReconsumeTimes, err)
		}
	}
	return nil
}

// checkStored compares the record of a message: its flag, its size, and what the client makes of it.
func checkStored(e *env, id string, isCompressed bool, body []byte) error {
	m, err := e.stored(id)
	if err != nil {
		return err
	}
	if flag := m.SysFlag&int32(primitive.CompressedFlag) != 0; flag != isCompressed {
		return fmt.Errorf("stored with the flag of compression %v, expected %v", flag, isCompressed)
	}
	if !bytes.Equal(m.Body, body) {
		return fmt.Errorf("stored body of %d bytes, sent %d", len(m.Body), len(body))
	}
	if repeats := bytes.Count(body, body[:1]) > len(body)/10; isCompressed && repeats && int(m.StoreSize) >= len(body) {
		return fmt.Errorf("stored in %d bytes, which are no less than its %d", m.StoreSize, len(body))
	}
	return nil
}

// batch: each message of a batch has an offset and an id of its own, by which it is found, and its own properties.
func batch(e *env) error {
	topic, err := e.topic(1)
	if err != nil {
		return err
	}
	p, err := e.theProducer(false)
	if err != nil {
		return err
	}
	const n = 32
	var msgs []*primitive.Message
	for i := 0; i < n; i++ {
		m := primitive.NewMessage(topic, []byte(fmt.Sprintf("b%d", i))).WithTag("tag").WithKeys([]string{fmt.Sprint(i)})
		msgs = append(msgs, m)
	}
	if _, err := e.send(primitive.NewMessage(topic, []byte("before"))); err != nil {
		return err
	}
	r, err := p.SendSync(context.Background(), msgs...)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	ids := strings.Split(r.OffsetMsgID, ",")
	if r.QueueOffset != 1 || len(ids) != n {
		return fmt.Errorf("the batch is at offset %d with %d ids, expected 1 and %d", r.QueueOffset, len(ids), n)
	}
	for i, id := range ids {
		m, err := e.stored(id)
		if err != nil {
			return err
		}
		if string(m.Body) != fmt.Sprintf("b%d", i) || m.QueueOffset != int64(i+1) || m.OffsetMsgId != id {
			return fmt.Errorf("id %d is of %s at offset %d with id %s", i, m.Body, m.QueueOffset, m.OffsetMsgId)
		}
	}
	return consumeBatch(e, topic, ids)
}

// batchUnanswered: batches that are sent without waiting, to the queue that they name, are whole and in order.
func batchUnanswered(e *env) error {
	topic, err := e.topic(3)
	if err != nil {
		return err
	}
	p, err := e.theProducer(true)
	if err != nil {
		return err
	}
	broker, want := e.brokerName(topic), map[string]bool{}
	messages := func(prefix string, queue int) []*primitive.Message {
		var msgs []*primitive.Message
		for i := 0; i < 20; i++ {
			m := primitive.NewMessage(topic, []byte(fmt.Sprintf("%s%d", prefix, i)))
			m.Queue = &primitive.MessageQueue{Topic: topic, BrokerName: broker, QueueId: queue}
			want[string(m.Body)] = true
			msgs = append(msgs, m)
		}
		return msgs
	}
	if err := p.SendOneWay(context.Background(), messages("oneway", 1)...); err != nil {
		return err
	}
	answered := make(chan error, 2)
	err = p.SendAsync(context.Background(), func(_ context.Context, r *primitive.SendResult, err error) {
		if err == nil && (r.Status != primitive.SendOK || len(strings.Split(r.OffsetMsgID, ",")) != 20) {
			err = fmt.Errorf("send status %d, ids %s", r.Status, r.OffsetMsgID)
		}
		answered <- err
	}, messages("async", 2)...)
	if err != nil {
		return err
	}
	if err := <-answered; err != nil {
		return fmt.Errorf("send: %w", err)
	}
	s := &sink{}
	if _, err := e.pushWith(e.name("g"), topic, s.as("")); err != nil {
		return err
	}
	if err := s.exactlyOnce(want); err != nil {
		return err
	}
	msgs, _ := s.snapshot()
	for _, m := range msgs {
		prefix := map[int]string{1: "oneway", 2: "async"}[m.Queue.QueueId]
		if string(m.Body) != fmt.Sprintf("%s%d", prefix, m.QueueOffset) {
			return fmt.Errorf("%s is at offset %d of queue %d", m.Body, m.QueueOffset, m.Queue.QueueId)
		}
	}
	return nil
}

// consumeBatch gets the messages of a batch, several at a time.
func consumeBatch(e *env, topic string, ids []string) error {
	s := &sink{}
	keep, most := s.as(""), 0
	_, err := e.pushWith(e.name("g"), topic, func(ctx context.Context, msgs []*primitive.MessageExt) consumer.ConsumeResult {
		s.mu.Lock()
		if len(msgs) > most {
			most = len(msgs)
		}
		s.mu.Unlock()
		return keep(ctx, msgs)
	}, consumer.WithConsumeMessageBatchMaxSize(8))
	if err != nil {
		return err
	}
	if err := s.exactlyOnce(all(numbered("b", len(ids)), map[string]bool{"before": true})); err != nil {
		return err
	}
	msgs, _ := s.snapshot()
	for _, m := range msgs {
		i := m.QueueOffset - 1
		if i < 0 {
			continue
		}
		if string(m.Body) != fmt.Sprintf("b%d", i) || m.GetKeys() != fmt.Sprint(i) || m.GetTags() != "tag" ||
			m.MsgId != ids[i] {
			return fmt.Errorf("offset %d has %s with key %s, tag %s, id %s", i+1, m.Body, m.GetKeys(), m.GetTags(), m.MsgId)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if most < 2 || most > 8 {
		return fmt.Errorf("%d messages at a time, expected 2 to 8", most)
	}
	return nil
}
