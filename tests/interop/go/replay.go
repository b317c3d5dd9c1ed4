package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"
)

// resetToTime is INVOKE_BROKER_TO_RESET_OFFSET, which this client's admin does not have.
func resetToTime(broker, topic, group string, ms int64) error {
	header, err := json.Marshal(map[string]interface{}{
		"code": 222, "flag": 0, "language": "GO", "opaque": 1, "version": 317, "serializeTypeCurrentRPC": "JSON",
		"extFields": map[string]string{"topic": topic, "group": group, "timestamp": fmt.Sprint(ms), "isForce": "true"}})
	if err != nil {
		return err
	}
	c, err := net.DialTimeout("tcp", broker, 20*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	if _, err := c.Write(append(frame, header...)); err != nil {
		return err
	}
	head := make([]byte, 8)
	if _, err := io.ReadFull(c, head); err != nil {
		return err
	}
	answer := make([]byte, binary.BigEndian.Uint32(head[4:])&0xffffff)
	if _, err := io.ReadFull(c, answer); err != nil {
		return err
	}
	var told struct {
		Code   int
		Remark string
	}
	if err := json.Unmarshal(answer, &told); err != nil {
		return err
	}
	if told.Code != 0 {
		return fmt.Errorf("reset: %d %s", told.Code, told.Remark)
	}
	return nil
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
