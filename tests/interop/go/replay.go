package main

import (
	"fmt"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
)

// resetToTime is INVOKE_BROKER_TO_RESET_OFFSET, which this client's admin does not have.
func resetToTime(broker, topic, group string, ms int64) error {
	_, err := ask(broker, 222, map[string]string{"topic": topic, "group": group, "timestamp": fmt.Sprint(ms),
		"isForce": "true"})
	return err
}

// reset: a consumer at work goes back to a time, and gets what came since once more.
func reset(e *env) error {
	topic, err := e.topic(2)
	if err != nil {
		return err
	}
	group, s := e.name("g"), &sink{}
	if _, err := e.push(group, topic, "*", false, s.as("")); err != nil {
		return err
	}
	if err := sendToAll(e, topic, "old", 2, 20); err != nil {
		return err
	}
	time.Sleep(700 * time.Millisecond)
	between := time.Now().UnixMilli()
	time.Sleep(700 * time.Millisecond)
	if err := sendToAll(e, topic, "new", 2, 20); err != nil {
		return err
	}
	want := numbered("old", 20)
	for body := range numbered("new", 20) {
		want[body] = true
	}
	if err := s.exactlyOnce(want); err != nil {
		return err
	}
	time.Sleep(6 * time.Second) // it commits each 5 s
	s.clear()
	if err := resetToTime(e.broker, topic, group, between); err != nil {
		return err
	}
	return s.exactlyOnce(numbered("new", 20))
}

// fromWhere: a new broadcast group begins where it wants to; a new cluster group at the first message that is still
// in memory, whatever it wants. Times are in seconds, and taken as of UTC.
func fromWhere(e *env) error {
	topic, err := e.topic(2)
	if err != nil {
		return err
	}
	if err := sendToAll(e, topic, "old", 2, 20); err != nil {
		return err
	}
	time.Sleep(1500 * time.Millisecond)
	second := time.Now().UTC().Format("20060102150405")
	time.Sleep(1500 * time.Millisecond)
	if err := sendToAll(e, topic, "new", 2, 20); err != nil {
		return err
	}
	sinks := map[string]*sink{}
	start := func(name string, model consumer.MessageModel, options ...consumer.Option) error {
		group := e.name("g")
		sinks[name] = &sink{}
		options = append(options, consumer.WithConsumerModel(model))
		if _, err := e.pushWith(group, topic, sinks[name].as(""), options...); err != nil {
			return err
		}
		return e.awaitQueues(topic, 2, group)
	}
	last := consumer.WithConsumeFromWhere(consumer.ConsumeFromLastOffset)
	for _, err := range []error{
		start("first", consumer.BroadCasting),
		start("last", consumer.BroadCasting, last),
		start("time", consumer.BroadCasting, consumer.WithConsumeFromWhere(consumer.ConsumeFromTimestamp),
			consumer.WithConsumeTimestamp(second)),
		start("cluster", consumer.Clustering, last),
		sendToAll(e, topic, "later", 2, 20),
	} {
		if err != nil {
			return err
		}
	}
	old, recent, later := numbered("old", 20), numbered("new", 20), numbered("later", 20)
	for name, want := range map[string]map[string]bool{"last": later, "time": all(recent, later),
		"first": all(old, recent, later), "cluster": all(old, recent, later)} {
		if err := sinks[name].exactlyOnce(want); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
