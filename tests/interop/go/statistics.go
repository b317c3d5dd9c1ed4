package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// runningInfo: the broker fetches from a client what it is doing, also its stacks; another client is an error.
func runningInfo(e *env) error {
	topic, err := e.topic(2)
	if err != nil {
		return err
	}
	group, s := e.name("g"), &sink{}
	if _, err := e.pushWith(group, topic, s.as("")); err != nil {
		return err
	}
	if err := sendToAll(e, topic, "m", 2, 20); err != nil {
		return err
	}
	if err := s.exactlyOnce(numbered("m", 20)); err != nil {
		return err
	}
	if err := e.awaitQueues(topic, 2, group); err != nil {
		return err
	}
	id := e.members(group)[0]
	for _, stack := range []bool{false, true} {
		info, err := e.runningInfo(deadline, group, id, stack)
		if err != nil {
			return err
		}
		parts := []string{`"PROP_CONSUME_TYPE":"CONSUME_PASSIVELY"`, `"PROP_NAMESERVER_ADDR":"` + e.namesrv + `;"`,
			`"topic":"` + topic + `","subString":"*"`, `"commitOffset":10`}
		for _, part := range parts {
			if !strings.Contains(info, part) {
				return fmt.Errorf("no %s in %s", part, info)
			}
		}
		if strings.Contains(info, "goroutine ") != stack {
			return fmt.Errorf("stacks were wanted: %v, got %.2000s", stack, info)
		}
	}
	if _, err := e.runningInfo(deadline, group, id+"x", false); err == nil {
		return fmt.Errorf("a client that is not there answered")
	}
	return consumerStatus(e, topic, group, id)
}

// consumerStatus: the broker fetches the offsets of the queues from the clients of a group, and knows who they are.
func consumerStatus(e *env, topic, group, id string) error {
	told, err := ask(e.broker, 223, map[string]string{"topic": topic, "group": group, "clientAddr": ""})
	if err != nil {
		return err
	}
	if body := string(told.body); !strings.Contains(body, id) || strings.Count(body, `"queueId":`) != 2 ||
		strings.Count(body, "}:10") != 2 {
		return fmt.Errorf("offsets of the clients: %s", body)
	}
	if told, err = ask(e.broker, 203, map[string]string{"consumerGroup": group}); err != nil {
		return err
	}
	var about struct {
		ConnectionSet                               []struct{ ClientId, ClientAddr, Language string }
		ConsumeType, MessageModel, ConsumeFromWhere string
		SubscriptionTable                           map[string]struct{ SubString, ExpressionType string }
	}
	if err := json.Unmarshal(told.body, &about); err != nil {
		return err
	}
	if len(about.ConnectionSet) != 1 || about.ConnectionSet[0].ClientId != id || about.ConnectionSet[0].Language != "GO" ||
		about.ConsumeType != "CONSUME_PASSIVELY" || about.MessageModel != "CLUSTERING" ||
		about.SubscriptionTable[topic].SubString != "*" || about.SubscriptionTable[topic].ExpressionType != "TAG" {
		return fmt.Errorf("connection of the group: %+v", about)
	}
	return nil
}

// directly: the broker hands one message to one client, which answers what it made of it; that moves no offset.
func directly(e *env) error {
	topic, err := e.topic(1)
	if err != nil {
		return err
	}
	group, s := e.name("g"), &sink{}
	keep := s.as("")
	_, err = e.pushWith(group, topic, func(ctx context.Context, msgs []*primitive.MessageExt) consumer.ConsumeResult {
		if keep(ctx, msgs); msgs[0].GetTags() == "later" && len(msgs) == 1 {
			return giveBack(ctx, 5)
		}
		return consumer.ConsumeSuccess
	})
	if err != nil {
		return err
	}
	ids := map[string]string{}
	for _, tag := range []string{"taken", "later"} {
		r, err := e.send(primitive.NewMessage(topic, []byte(tag)).WithTag(tag))
		if err != nil {
			return err
		}
		ids[tag] = r.OffsetMsgID
	}
	if err := s.exactlyOnce(map[string]bool{"taken": true, "later": true}); err != nil {
		return err
	}
	if err := e.awaitCommitted(topic, group); err != nil {
		return err
	}
	s.clear()
	client := e.members(group)[0]
	for tag, want := range map[string]int{"taken": 0, "later": 1} {
		told, err := ask(e.broker, 309, map[string]string{"consumerGroup": group, "clientId": client, "msgId": ids[tag],
			"brokerName": e.brokerName(topic), "topic": topic})
		if err != nil {
			return err
		}
		var result struct{ ConsumeResult int }
		if err := json.Unmarshal(told.body, &result); err != nil || result.ConsumeResult != want {
			return fmt.Errorf("%s: result %d, expected %d: %s", tag, result.ConsumeResult, want, told.body)
		}
	}
	return s.exactlyOnce(map[string]bool{"taken": true, "later": true})
}

// offsetDiff: the client knows from its pulls how many messages of a topic are before it.
func offsetDiff(e *env) error {
	topic, err := e.topic(1)
	if err != nil {
		return err
	}
	group, s, release := e.name("g"), &sink{}, make(chan struct{})
	keep := s.as("")
	c, err := e.pushWith(group, topic, func(ctx context.Context, msgs []*primitive.MessageExt) consumer.ConsumeResult {
		if string(msgs[0].Body) == "m2" {
			<-release
		}
		return keep(ctx, msgs)
	})
	if err != nil {
		return err
	}
	if err := sendToAll(e, topic, "m", 1, 10); err != nil {
		return err
	}
	err = until("8 messages before it, as the third is not done", func() bool { return c.GetOffsetDiffMap()[topic] == 8 })
	close(release)
	if err != nil {
		return fmt.Errorf("%w: %v", err, c.GetOffsetDiffMap())
	}
	if err := s.exactlyOnce(numbered("m", 10)); err != nil {
		return err
	}
	return until("no message before it", func() bool {
		n, known := c.GetOffsetDiffMap()[topic]
		return known && n == 0
	})
}

// subscriptionGroup: a consumer's group is in the broker's list of groups, with the defaults.
func subscriptionGroup(e *env) error {
	topic, err := e.topic(1)
	if err != nil {
		return err
	}
	group := e.name("g")
	if _, err := e.pushWith(group, topic, (&sink{}).as("")); err != nil {
		return err
	}
	if err := until("the group has a member", func() bool { return len(e.members(group)) == 1 }); err != nil {
		return err
	}
	all, err := e.admin.GetAllSubscriptionGroup(context.Background(), e.broker, 10*time.Second)
	if err != nil {
		return fmt.Errorf("groups: %w", err)
	}
	g, there := all.SubscriptionGroupTable[group]
	if !there || g.GroupName != group || !g.ConsumeEnable || !g.ConsumeBroadcastEnable || g.RetryMaxTimes != 16 ||
		g.RetryQueueNums != 1 || !g.NotifyConsumerIdsChangedEnable {
		return fmt.Errorf("group of the consumer: %v %+v", there, g)
	}
	return nil
}
