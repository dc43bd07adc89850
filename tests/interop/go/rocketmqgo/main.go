// rocketmq-client-go against a node: rocketmqgo NAMESRV. Says on standard output, statement by statement, what it saw; the topics
// go_plain (4 queues), go_tags, go_delay and go_transactions (1 queue) must be there.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

// For any condition, however slow the machine.
const limit = 120 * time.Second

// seen is what a member was given.
type seen struct {
	mutex    sync.Mutex
	bodies   map[string]int
	messages []*primitive.MessageExt
}

func (s *seen) take(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, message := range messages {
		s.bodies[string(message.Body)]++
		s.messages = append(s.messages, message)
	}
	return consumer.ConsumeSuccess, nil
}

func (s *seen) sorted() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var bodies []string
	for body, times := range s.bodies {
		for ; times > 0; times-- {
			bodies = append(bodies, body)
		}
	}
	sort.Strings(bodies)
	return strings.Join(bodies, ",")
}

// count is how many different messages came.
func (s *seen) count() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.bodies)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func until(what string, condition func() bool) {
	for end := time.Now().Add(limit); !condition(); time.Sleep(30 * time.Millisecond) {
		if time.Now().After(end) {
			fmt.Fprintln(os.Stderr, "in vain waited for", what)
			os.Exit(1)
		}
	}
}

var resolver primitive.NsResolver

func member(group, instance, topic, tags string) (rocketmq.PushConsumer, *seen) {
	s := &seen{bodies: map[string]int{}}
	c, err := rocketmq.NewPushConsumer(consumer.WithGroupName(group), consumer.WithInstance(instance),
		consumer.WithNsResolver(resolver), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	check(err)
	selector := consumer.MessageSelector{}
	if tags != "" {
		selector = consumer.MessageSelector{Type: consumer.TAG, Expression: tags}
	}
	check(c.Subscribe(topic, selector, s.take))
	check(c.Start())
	return c, s
}

func send(p rocketmq.Producer, message *primitive.Message) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	result, err := p.SendSync(ctx, message)
	check(err)
	if result.Status != primitive.SendOK {
		check(fmt.Errorf("send: %v", result))
	}
}

func kinds(p rocketmq.Producer) {
	one, seen := member("go_kinds", "kinds", "go_plain", "")
	send(p, primitive.NewMessage("go_plain", []byte("sync")))
	answer := make(chan error, 1)
	check(p.SendAsync(context.Background(), func(_ context.Context, _ *primitive.SendResult, err error) { answer <- err },
		primitive.NewMessage("go_plain", []byte("async"))))
	check(<-answer)
	check(p.SendOneWay(context.Background(), primitive.NewMessage("go_plain", []byte("one way"))))
	batch := []*primitive.Message{primitive.NewMessage("go_plain", []byte("batch 1")), primitive.NewMessage("go_plain", []byte("batch 2"))}
	_, err := p.SendSync(context.Background(), batch...)
	check(err)
	until("five messages", func() bool { return seen.count() == 5 })
	fmt.Println("sent and consumed", seen.sorted())
	check(one.Shutdown())
}

func leaving(p rocketmq.Producer) {
	one, first := member("go_members", "one", "go_plain", "")
	other, second := member("go_members", "other", "go_plain", "")
	all := func() map[string]bool {
		bodies := map[string]bool{}
		for _, s := range []*seen{first, second} {
			s.mutex.Lock()
			for body := range s.bodies {
				if strings.HasPrefix(body, "m") {
					bodies[body] = true
				}
			}
			s.mutex.Unlock()
		}
		return bodies
	}
	number := 0
	until("both have some", func() bool {
		number++
		send(p, primitive.NewMessage("go_plain", []byte(fmt.Sprintf("m%d", number))))
		return first.count() > 5 && second.count() > 5
	})
	until("all", func() bool { return len(all()) == number })
	check(one.Shutdown())
	for more := number + 20; number < more; {
		number++
		send(p, primitive.NewMessage("go_plain", []byte(fmt.Sprintf("m%d", number))))
	}
	until("all", func() bool { return len(all()) == number })
	check(other.Shutdown())
	fmt.Println("two members had some each, the one that stayed the rest")
}

func tags(p rocketmq.Producer) {
	one, seen := member("go_tags", "tags", "go_tags", "A || C")
	for _, tag := range []string{"A", "B", "C", "A"} {
		message := primitive.NewMessage("go_tags", []byte("of "+tag))
		message.WithTag(tag).WithKeys([]string{"key"})
		message.WithProperty("user", "value")
		send(p, message)
	}
	until("two kinds", func() bool { return seen.sorted() == "of A,of A,of C" })
	first := seen.messages[0]
	fmt.Println("by tags", seen.sorted(), "with", first.GetKeys(), first.GetProperty("user"))
	check(one.Shutdown())
}

func delay(p rocketmq.Producer) {
	one, seen := member("go_delay", "delay", "go_delay", "")
	message := primitive.NewMessage("go_delay", []byte("later"))
	message.WithDelayTimeLevel(1)
	send(p, message)
	until("it", func() bool { return seen.count() == 1 })
	waited := seen.messages[0].StoreTimestamp - seen.messages[0].BornTimestamp
	fmt.Println("a second later at least:", waited >= 1000)
	check(one.Shutdown())
}

// decider answers for messages by their bodies.
type decider struct {
	mutex sync.Mutex
	asked map[string]int
}

func (d *decider) ExecuteLocalTransaction(message *primitive.Message) primitive.LocalTransactionState {
	switch string(message.Body) {
	case "commit":
		return primitive.CommitMessageState
	case "rollback":
		return primitive.RollbackMessageState
	}
	return primitive.UnkonwnState
}

func (d *decider) CheckLocalTransaction(message *primitive.MessageExt) primitive.LocalTransactionState {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.asked[string(message.Body)]++
	if string(message.Body) == "asked, commit" {
		return primitive.CommitMessageState
	}
	return primitive.RollbackMessageState
}

func transactions() {
	one, seen := member("go_transactions", "transactions", "go_transactions", "")
	d := &decider{asked: map[string]int{}}
	p, err := rocketmq.NewTransactionProducer(d, producer.WithNsResolver(resolver), producer.WithGroupName("go_transactor"),
		producer.WithInstanceName("transactor"))
	check(err)
	check(p.Start())
	for _, body := range []string{"commit", "rollback", "asked, commit", "asked, rollback"} {
		_, err := p.SendMessageInTransaction(context.Background(), primitive.NewMessage("go_transactions", []byte(body)))
		check(err)
	}
	until("both are asked about", func() bool {
		d.mutex.Lock()
		defer d.mutex.Unlock()
		return d.asked["asked, commit"] > 0 && d.asked["asked, rollback"] > 0
	})
	until("the committed ones", func() bool { return seen.count() >= 2 })
	_, err = p.SendMessageInTransaction(context.Background(), primitive.NewMessage("go_transactions", []byte("commit")))
	check(err)
	until("the last one", func() bool { return seen.sorted() == "asked, commit,commit,commit" })
	fmt.Println("transactions", seen.sorted())
	check(p.Shutdown())
	check(one.Shutdown())
}

func main() {
	rlog.SetLogLevel("error")
	resolver = primitive.NewPassthroughResolver([]string{os.Args[1]})
	p, err := rocketmq.NewProducer(producer.WithNsResolver(resolver), producer.WithGroupName("go_producer"),
		producer.WithInstanceName("producer"), producer.WithRetry(2), producer.WithSendMsgTimeout(limit))
	check(err)
	check(p.Start())
	kinds(p)
	leaving(p)
	tags(p)
	delay(p)
	transactions()
	check(p.Shutdown())
}
