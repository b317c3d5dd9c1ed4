package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// answer is what a broker says to a request.
type answer struct {
	Code      int
	Remark    string
	ExtFields map[string]string
	body      []byte
}

// ask sends a request that this client's admin does not have, and fails unless the answer is SUCCESS.
func ask(broker string, code int, fields map[string]string) (*answer, error) {
	return askFor(30*time.Second, broker, code, fields)
}

func askFor(limit time.Duration, broker string, code int, fields map[string]string) (*answer, error) {
	header, err := json.Marshal(map[string]interface{}{"code": code, "flag": 0, "language": "GO", "opaque": 1,
		"version": 317, "serializeTypeCurrentRPC": "JSON", "extFields": fields})
	if err != nil {
		return nil, err
	}
	c, err := net.DialTimeout("tcp", broker, limit)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	if _, err := c.Write(append(frame, header...)); err != nil {
		return nil, err
	}
	head := make([]byte, 8)
	if _, err := io.ReadFull(c, head); err != nil {
		return nil, err
	}
	headerSize := binary.BigEndian.Uint32(head[4:]) & 0xffffff
	rest := make([]byte, binary.BigEndian.Uint32(head)-4)
	if _, err := io.ReadFull(c, rest); err != nil {
		return nil, err
	}
	told := &answer{body: rest[headerSize:]}
	if err := json.Unmarshal(rest[:headerSize], told); err != nil {
		return nil, err
	}
	if told.Code != 0 {
		return told, fmt.Errorf("request %d: %d %s", code, told.Code, told.Remark)
	}
	return told, nil
}

// members are the client ids of a group.
func (e *env) members(group string) []string {
	told, err := ask(e.broker, 38, map[string]string{"consumerGroup": group})
	if err != nil {
		return nil
	}
	var list struct{ ConsumerIdList []string }
	if json.Unmarshal(told.body, &list) != nil {
		return nil
	}
	return list.ConsumerIdList
}

// runningInfo is what one client says of itself: no JSON, for this client's queues are objects as keys. A client does
// not answer while it is starting, so there is a limit.
func (e *env) runningInfo(limit time.Duration, group, clientID string, stack bool) (string, error) {
	told, err := askFor(limit, e.broker, 307, map[string]string{"consumerGroup": group, "clientId": clientID,
		"jstackEnable": strconv.FormatBool(stack)})
	if err != nil {
		return "", err
	}
	return string(told.body), nil
}

// queuesOf are the ids of the queues of a topic that one client says are its own.
func (e *env) queuesOf(group, clientID, topic string) []string {
	info, err := e.runningInfo(300*time.Millisecond, group, clientID, false)
	if err != nil {
		return nil
	}
	queue := regexp.MustCompile(`\{"topic":"` + regexp.QuoteMeta(topic) + `","brokerName":"[^"]*","queueId":\d+\}:`)
	return queue.FindAllString(info, -1)
}

// awaitQueues waits until each member of a broadcast group, or the only one of another, has all queues.
func (e *env) awaitQueues(topic string, queues int, group string) error {
	return until("all queues are taken", func() bool {
		ids := e.members(group)
		for _, id := range ids {
			if len(e.queuesOf(group, id, topic)) != queues {
				return false
			}
		}
		return len(ids) > 0
	})
}

// awaitCommitted waits until the broker has the offsets behind all messages of a topic for a group.
func (e *env) awaitCommitted(topic, group string) error {
	numbers := func(body, name string) string {
		return fmt.Sprint(regexp.MustCompile(`"`+name+`":(\d+)`).FindAllStringSubmatch(body, -1))
	}
	return until("all offsets are committed", func() bool {
		told, err := ask(e.broker, 208, map[string]string{"consumerGroup": group, "topic": topic})
		if err != nil {
			return false
		}
		ends := strings.ReplaceAll(numbers(string(told.body), "brokerOffset"), "brokerOffset", "consumerOffset")
		return ends != "[]" && ends == numbers(string(told.body), "consumerOffset")
	})
}
