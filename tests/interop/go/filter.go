package main

import (
	"fmt"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// sql: a SQL92 expression selects by properties; this client's pulls leave it to the one of the heartbeat.
func sql(e *env) error {
	topic, err := e.topic(2)
	if err != nil {
		return err
	}
	want, err := sendWithProperties(e, topic)
	if err != nil {
		return err
	}
	s := &sink{}
	selector := consumer.MessageSelector{Type: consumer.SQL92, Expression: "n BETWEEN 10 AND 20 AND name CONTAINS 'me-1'"}
	if _, err := e.pushBy(e.name("g"), topic, selector, false, s.as("")); err != nil {
		return err
	}
	return s.exactlyOnce(want)
}

// sendWithProperties sends 40 messages and returns the bodies of those that the expression of sql matches.
func sendWithProperties(e *env, topic string) (map[string]bool, error) {
	want := map[string]bool{}
	for i := 0; i < 40; i++ {
		body := fmt.Sprintf("m%d", i)
		m := primitive.NewMessage(topic, []byte(body))
		m.WithProperty("n", fmt.Sprint(i))
		m.WithProperty("name", fmt.Sprintf("name-%d", i))
		if _, err := e.send(m); err != nil {
			return nil, err
		}
		if i >= 10 && i < 20 {
			want[body] = true
		}
	}
	return want, nil
}
