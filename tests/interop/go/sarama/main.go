// sarama under command: sarama BOOTSTRAP, commands on standard input.
//
// The line protocol and the commands are those of tests/interop/java/KafkaDriver.java. `read` needs topics whose
// partitions end with a record that is shown: this consumer does not tell its position.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"

	"duolog.interop/clients/wire"

	"github.com/IBM/sarama"
)

type driver struct {
	bootstrap []string
	producers map[string]*producer
	members   map[string]*member
}

type producer struct {
	sarama.AsyncProducer
	sends []*sarama.ProducerMessage
}

func main() {
	d := &driver{os.Args[1:], map[string]*producer{}, map[string]*member{}}
	end := func(how func(sarama.AsyncProducer) error) func(wire.Args) error {
		return func(args wire.Args) error { return how(d.producers[args.Need("id")]) }
	}
	wire.Serve(wire.Handlers{
		"producer": d.producer, "send": d.send, "flush": d.flush, "close": d.close, "read": d.read,
		"join": d.join, "assignment": d.assignment, "leave": d.leave,
		"init":   func(wire.Args) error { return nil }, // `producer` has done it
		"begin":  end(sarama.AsyncProducer.BeginTxn),
		"commit": end(sarama.AsyncProducer.CommitTxn), "abort": end(sarama.AsyncProducer.AbortTxn),
		"transform": d.transform,
		"create":    d.create, "describe": d.describe, "delete": d.delete, "topics": d.topics,
	})
}

// configured is a configuration for the newest protocol that this version speaks.
func configured(args wire.Args) (*sarama.Config, error) {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Consumer.Return.Errors = true
	config.Consumer.MaxWaitTime = 100 * time.Millisecond // who leaves waits for the last fetch
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Interval = 200 * time.Millisecond
	config.Consumer.Group.Rebalance.GroupStrategies =
		[]sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Flush.Frequency = 50 * time.Millisecond
	err := args.Config(map[string]func(string){
		"linger.ms":             func(value string) { config.Producer.Flush.Frequency = wire.Milliseconds(value) },
		"heartbeat.interval.ms": func(value string) { config.Consumer.Group.Heartbeat.Interval = wire.Milliseconds(value) },
		"isolation.level": func(value string) {
			if value == "read_committed" {
				config.Consumer.IsolationLevel = sarama.ReadCommitted
			}
		},
		"transactional.id": func(value string) {
			config.Producer.Transaction.ID = value
			config.Producer.Idempotent = true
			config.Net.MaxOpenRequests = 1
		},
	})
	return config, err
}

// producer id= [compression=] [c.CONFIG=]
func (d *driver) producer(args wire.Args) error {
	config, err := configured(args)
	if err != nil {
		return err
	}
	if err := config.Producer.Compression.UnmarshalText([]byte(args.Get("compression", "none"))); err != nil {
		return err
	}
	made, err := sarama.NewAsyncProducer(d.bootstrap, config)
	d.producers[args.Need("id")] = &producer{AsyncProducer: made}
	return err
}

// encoder keeps apart what is absent and what is empty.
func encoder(bytes []byte) sarama.Encoder {
	if bytes == nil {
		return nil
	}
	return sarama.ByteEncoder(bytes)
}

// send id= topic= partition= [ts=] [key=hex] [value=hex] [h=hexname:hexvalue|-]...
func (d *driver) send(args wire.Args) error {
	message := &sarama.ProducerMessage{Topic: args.Need("topic"),
		Partition: int32(args.Number("partition", 0)), Timestamp: args.Time(),
		Key: encoder(args.Bytes("key")), Value: encoder(args.Bytes("value"))}
	for _, header := range args.Headers() {
		message.Headers = append(message.Headers,
			sarama.RecordHeader{Key: []byte(header.Name), Value: header.Value})
	}
	p := d.producers[args.Need("id")]
	p.sends = append(p.sends, message)
	return nil
}

// flush id=: one line for each send since the last flush, in the order of the sends.
func (d *driver) flush(args wire.Args) error {
	p := d.producers[args.Need("id")]
	_, err := deliver(p, p.sends, func(message *sarama.ProducerMessage, err error) {
		if err != nil {
			wire.Emit(wire.Line{"failed": err.Error()})
			return
		}
		wire.Emit(wire.Line{"partition": message.Partition, "offset": message.Offset,
			"timestamp": message.Timestamp.UnixMilli()})
	})
	p.sends = nil
	return err
}

// deliver sends messages and tells of each, in their order, how it ended; the first failure is told again.
func deliver(p sarama.AsyncProducer, messages []*sarama.ProducerMessage,
	tell func(*sarama.ProducerMessage, error)) (failed, err error) {
	go func() {
		for _, message := range messages {
			p.Input() <- message
		}
	}()
	errs := map[*sarama.ProducerMessage]error{}
	deadline := time.After(2 * wire.Limit)
	for range messages {
		select {
		case <-p.Successes():
		case failure := <-p.Errors():
			errs[failure.Msg] = failure.Err
			failed = failure.Err
		case <-deadline:
			return nil, errors.New("not all records were answered in time")
		}
	}
	for _, message := range messages {
		tell(message, errs[message])
	}
	return failed, nil
}

func (d *driver) close(args wire.Args) error {
	p := d.producers[args.Need("id")]
	delete(d.producers, args.Need("id"))
	return p.Close()
}

func described(message *sarama.ConsumerMessage) wire.Record {
	told := wire.Record{Topic: message.Topic, Partition: message.Partition, Offset: message.Offset,
		Timestamp: message.Timestamp, Key: message.Key, Value: message.Value}
	for _, header := range message.Headers {
		told.Headers = append(told.Headers,
			wire.Header{Name: string(header.Key), Value: header.Value})
	}
	return told
}

// read topic= [c.CONFIG=]: every record below the end of now.
func (d *driver) read(args wire.Args) error {
	config, err := configured(args)
	if err != nil {
		return err
	}
	client, err := sarama.NewClient(d.bootstrap, config)
	if err != nil {
		return err
	}
	defer client.Close()
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return err
	}
	defer consumer.Close()
	topic := args.Need("topic")
	partitions, err := client.Partitions(topic)
	if err != nil {
		return err
	}
	for _, partition := range partitions {
		end, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
		if err != nil {
			return err
		}
		if err := readTo(consumer, topic, partition, end); err != nil {
			return err
		}
	}
	return nil
}

func readTo(consumer sarama.Consumer, topic string, partition int32, end int64) error {
	if end == 0 {
		return nil
	}
	claim, err := consumer.ConsumePartition(topic, partition, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	defer claim.AsyncClose()
	deadline := time.After(wire.Limit)
	for {
		select {
		case message := <-claim.Messages():
			wire.Emit(described(message).Line())
			if message.Offset+1 >= end {
				return nil
			}
		case failure := <-claim.Errors():
			return failure
		case <-deadline:
			return fmt.Errorf("partition %d: not everything below %d came in time", partition, end)
		}
	}
}

// member is one consumer of a group.
type member struct {
	name     string
	assigned wire.Assigned
	group    sarama.ConsumerGroup
	cancel   context.CancelFunc
	ended    chan struct{}
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.assigned.Clear()
	m.assigned.Add(session.Claims())
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.assigned.Clear()
	return nil
}

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		if session.Context().Err() != nil {
			return nil // the next owner tells it
		}
		wire.Emit(described(message).Event(m.name))
		session.MarkMessage(message, "")
	}
	return nil
}

// join name= group= topics= [c.CONFIG=]: a member; its records come as events.
func (d *driver) join(args wire.Args) error {
	config, err := configured(args)
	if err != nil {
		return err
	}
	group, err := sarama.NewConsumerGroup(d.bootstrap, args.Need("group"), config)
	if err != nil {
		return err
	}
	m := &member{name: args.Need("name"), group: group, ended: make(chan struct{})}
	var running context.Context
	running, m.cancel = context.WithCancel(context.Background())
	d.members[m.name] = m
	go func() {
		for err := range group.Errors() {
			m.assigned.Fail(err)
		}
	}()
	go func() {
		defer close(m.ended)
		for running.Err() == nil {
			if err := group.Consume(running, []string{args.Need("topics")}, m); err != nil {
				m.assigned.Fail(err)
				return
			}
		}
	}()
	return nil
}

func (d *driver) assignment(args wire.Args) error {
	return d.members[args.Need("name")].assigned.Tell()
}

func (d *driver) leave(args wire.Args) error {
	m := d.members[args.Need("name")]
	delete(d.members, args.Need("name"))
	m.cancel()
	<-m.ended
	return errors.Join(m.group.Close(), m.assigned.Failure())
}

// copier is the member of a group that copies what it reads.
type copier struct {
	mutex                                       sync.Mutex
	producer                                    sarama.AsyncProducer
	group, to                                   string
	count, every, copied, aborted, transactions int64
	cancel                                      context.CancelFunc
}

func (c *copier) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (c *copier) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (c *copier) ConsumeClaim(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for first := range claim.Messages() {
		messages := []*sarama.ConsumerMessage{first}
		for wait := time.After(100 * time.Millisecond); len(messages) < 7 && wait != nil; {
			select {
			case message, open := <-claim.Messages():
				if !open {
					return nil
				}
				messages = append(messages, message)
			case <-wait:
				wait = nil
			}
		}
		if again, err := c.copy(messages); again || err != nil {
			return err // the session ends, and the next begins where the group's positions are
		}
	}
	return nil
}

// copy makes one transaction; after an aborted one its records must come again.
func (c *copier) copy(from []*sarama.ConsumerMessage) (again bool, err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.producer.BeginTxn(); err != nil {
		return false, err
	}
	var to []*sarama.ProducerMessage
	for _, message := range from {
		to = append(to, &sarama.ProducerMessage{Topic: c.to, Partition: message.Partition,
			Key: encoder(message.Key), Value: encoder(message.Value)})
	}
	failed, err := deliver(c.producer, to, func(*sarama.ProducerMessage, error) {})
	if err := errors.Join(failed, err); err != nil {
		return false, err
	}
	if err := c.producer.AddMessageToTxn(from[len(from)-1], c.group, nil); err != nil {
		return false, err
	}
	c.transactions++
	if c.every > 0 && c.transactions%c.every == 0 {
		c.aborted++
		return true, c.producer.AbortTxn()
	}
	c.copied += int64(len(from))
	if c.copied >= c.count {
		c.cancel()
	}
	return false, c.producer.CommitTxn()
}

// transform id= group= from= to= count= [abort=n]: copies records in transactions.
func (d *driver) transform(args wire.Args) error {
	config, err := configured(args)
	if err != nil {
		return err
	}
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.Return.Errors = false
	group, err := sarama.NewConsumerGroup(d.bootstrap, args.Need("group"), config)
	if err != nil {
		return err
	}
	defer group.Close()
	running, cancel := context.WithTimeout(context.Background(), 2*wire.Limit)
	defer cancel()
	c := &copier{producer: d.producers[args.Need("id")], group: args.Need("group"), to: args.Need("to"),
		count: args.Number("count", 0), every: args.Number("abort", 0), cancel: cancel}
	for running.Err() == nil {
		if err := group.Consume(running, []string{args.Need("from")}, c); err != nil {
			return err
		}
	}
	wire.Emit(wire.Line{"copied": c.copied, "aborted": c.aborted})
	return nil
}

func (d *driver) admin(args wire.Args, work func(sarama.ClusterAdmin) error) error {
	config, err := configured(args)
	if err != nil {
		return err
	}
	admin, err := sarama.NewClusterAdmin(d.bootstrap, config)
	if err != nil {
		return err
	}
	return errors.Join(work(admin), admin.Close())
}

// create topic= partitions= key= value=: a topic with one configuration of its own.
func (d *driver) create(args wire.Args) error {
	return d.admin(args, func(admin sarama.ClusterAdmin) error {
		value := args.Need("value")
		return admin.CreateTopic(args.Need("topic"), &sarama.TopicDetail{
			NumPartitions: int32(args.Number("partitions", 1)), ReplicationFactor: 1,
			ConfigEntries: map[string]*string{args.Need("key"): &value}}, false)
	})
}

// describe topic= key=: how many partitions it has and the value of that configuration.
func (d *driver) describe(args wire.Args) error {
	return d.admin(args, func(admin sarama.ClusterAdmin) error {
		topics, err := admin.DescribeTopics([]string{args.Need("topic")})
		if err != nil {
			return err
		}
		if topics[0].Err != sarama.ErrNoError {
			return topics[0].Err
		}
		entries, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource,
			Name: args.Need("topic"), ConfigNames: []string{args.Need("key")}})
		if err != nil || len(entries) != 1 {
			return fmt.Errorf("entries %v: %w", entries, err)
		}
		wire.Emit(wire.Line{"partitions": len(topics[0].Partitions), "value": entries[0].Value})
		return nil
	})
}

func (d *driver) delete(args wire.Args) error {
	return d.admin(args, func(admin sarama.ClusterAdmin) error { return admin.DeleteTopic(args.Need("topic")) })
}

func (d *driver) topics(args wire.Args) error {
	return d.admin(args, func(admin sarama.ClusterAdmin) error {
		topics, err := admin.ListTopics()
		if err != nil {
			return err
		}
		names := make([]string, 0, len(topics))
		for name := range topics {
			names = append(names, name)
		}
		sort.Strings(names)
		wire.Emit(wire.Line{"topics": names})
		return nil
	})
}
