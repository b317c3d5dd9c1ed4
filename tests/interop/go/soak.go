package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

var sayMu sync.Mutex

// say writes a line of a soak; what it means stands in tests/soak/checker.py.
func say(fields ...any) {
	line := "@"
	for _, f := range fields {
		line += fmt.Sprintf("\t%v", f)
	}
	sayMu.Lock()
	defer sayMu.Unlock()
	fmt.Println(line)
}

func us() int64 { return time.Now().UnixMicro() }

var levelSeconds = []int64{1, 5, 10, 30}

func soakSend(p rocketmq.Producer, kind, key string) {
	m := primitive.NewMessage("soak_"+kind, []byte(key)).WithKeys([]string{key})
	due := int64(0)
	if kind == "godelay" {
		level := rand.Intn(len(levelSeconds))
		m.WithDelayTimeLevel(level + 1)
		due = us() + levelSeconds[level]*1000000
	}
	say("S", kind, key, us(), due, "")
	r, err := p.SendSync(context.Background(), m)
	switch {
	case err != nil:
		say("F", kind, key, us(), strings.Join(strings.Fields(err.Error()), " "))
	case r.Status != primitive.SendOK:
		say("F", kind, key, us(), r.Status)
	default:
		say("A", kind, key, us(), fmt.Sprintf("%d:%d", r.MessageQueue.QueueId, r.QueueOffset))
	}
}

func soakEvery(p rocketmq.Producer, kind string, perSecond float64, stop chan struct{}, wg *sync.WaitGroup) {
	defer wg.Done()
	tick := time.NewTicker(time.Duration(float64(time.Second) / perSecond))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-tick.C:
			soakSend(p, kind, kind+strconv.Itoa(n))
		}
	}
}

func soakConsume(e *env, kind string) error {
	_, err := e.push("g_soak_"+kind, "soak_"+kind, "*", false,
		func(_ context.Context, msgs []*primitive.MessageExt) consumer.ConsumeResult {
			now := us()
			for _, m := range msgs {
				say("R", kind, m.GetKeys(), now, fmt.Sprintf("%d:%d", m.Queue.QueueId, m.QueueOffset),
					m.ReconsumeTimes, "go")
			}
			return consumer.ConsumeSuccess
		})
	return err
}

// soak sends plain and delayed messages until standard input says "stop", and consumes until it ends.
func soak(namesrv, broker, rate string) error {
	factor, err := strconv.ParseFloat(rate, 64)
	if err != nil {
		return err
	}
	e := newEnv(namesrv, broker, "soak")
	for _, kind := range []string{"go", "godelay"} {
		if err := soakConsume(e, kind); err != nil {
			return err
		}
	}
	p, err := rocketmq.NewProducer(producer.WithNsResolver(e.resolver()), producer.WithGroupName("p_soak_go"),
		producer.WithInstanceName(e.name("i")), producer.WithRetry(0), producer.WithSendMsgTimeout(10*time.Second))
	if err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	stop, wg := make(chan struct{}), sync.WaitGroup{}
	wg.Add(2)
	go soakEvery(p, "go", 10*factor, stop, &wg)
	go soakEvery(p, "godelay", 5*factor, stop, &wg)
	say("ready", "go")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if in.Text() == "stop" {
			close(stop)
			wg.Wait()
			say("stopped", "go")
		}
	}
	return nil
}
