package main

import (
	"context"
	"fmt"

	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// changeTopic: a topic that is created once more changes, nobody writes to one without the right to, and one that is
// deleted without any address is gone.
func changeTopic(e *env) error {
	topic, err := e.topic(2)
	if err != nil {
		return err
	}
	change := func(perm int) error {
		return e.admin.CreateTopic(context.Background(), admin.WithTopicCreate(topic), admin.WithBrokerAddrCreate(e.broker),
			admin.WithReadQueueNums(3), admin.WithWriteQueueNums(3), admin.WithPerm(perm))
	}
	send := func() error {
		p, err := e.newProducer() // one that has no route yet
		if err != nil {
			return err
		}
		_, err = p.SendSync(context.Background(), primitive.NewMessage(topic, []byte("m")))
		return err
	}
	if err := change(4); err != nil {
		return err
	}
	if err := until("no queue may be written to", func() bool { return send() != nil }); err != nil {
		return err
	}
	if err := change(6); err != nil {
		return err
	}
	if err := e.awaitRoute(topic, 3); err != nil {
		return err
	}
	if err := send(); err != nil {
		return err
	}
	if err := e.admin.DeleteTopic(context.Background(), admin.WithTopicDelete(topic)); err != nil {
		return fmt.Errorf("delete topic: %w", err)
	}
	e.admin = nil // it keeps the route
	a, err := e.theAdmin()
	if err != nil {
		return err
	}
	return until("the deleted topic has no route", func() bool {
		_, err := a.FetchPublishMessageQueues(context.Background(), topic)
		return err != nil
	})
}

// selectors: messages go to the queues that the selector of the producer chose: by hash of the sharding key, in turn,
// or at random.
func selectors(e *env) error {
	topic, err := e.topic(4)
	if err != nil {
		return err
	}
	want := map[string]bool{}
	for name, selector := range map[string]producer.QueueSelector{"hash": producer.NewHashQueueSelector(),
		"turn": producer.NewRoundRobinQueueSelector(), "random": producer.NewRandomQueueSelector()} {
		p, err := e.newProducer(producer.WithQueueSelector(selector))
		if err != nil {
			return err
		}
		byKey, perQueue := map[string]int{}, map[int]int{}
		for i := 0; i < 40; i++ {
			key, body := fmt.Sprintf("key%d", i%10), fmt.Sprintf("%s%d", name, i)
			want[body] = true
			m := primitive.NewMessage(topic, []byte(body)).WithShardingKey(key)
			r, err := p.SendSync(context.Background(), m)
			if err != nil {
				return fmt.Errorf("send: %w", err)
			}
			q := r.MessageQueue.QueueId
			if before, seen := byKey[key]; name == "hash" && seen && before != q {
				return fmt.Errorf("%s is in the queues %d and %d", key, before, q)
			}
			byKey[key] = q
			perQueue[q]++
		}
		if name == "turn" && fmt.Sprint(perQueue) != "map[0:10 1:10 2:10 3:10]" || len(perQueue) < 2 {
			return fmt.Errorf("%s: messages of the queues %v", name, perQueue)
		}
	}
	s := &sink{}
	if _, err := e.pushWith(e.name("g"), topic, s.as("")); err != nil {
		return err
	}
	return s.exactlyOnce(want)
}
