// kafka-go under command: kafkago BOOTSTRAP, commands on standard input.
//
// The line protocol and the commands are those of tests/interop/java/KafkaDriver.java. `read` needs topics whose
// partitions end with a record that is shown: this reader does not tell its position. The client has no
// transactional producer.
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

	"github.com/segmentio/kafka-go"
)

type driver struct {
	bootstrap string
	producers map[string]*producer
	members   map[string]*member
}

type producer struct {
	*kafka.Writer
	mutex sync.Mutex
	sends []kafka.Message
	ends  []wire.Line
}

// place is what a message carries through the writer.
type place struct{ send, partition int }

func main() {
	d := &driver{os.Args[1], map[string]*producer{}, map[string]*member{}}
	wire.Serve(wire.Handlers{
		"producer": d.producer, "send": d.send, "flush": d.flush, "close": d.close, "read": d.read,
		"join": d.join, "assignment": d.assignment, "leave": d.leave,
		"create": d.create, "describe": d.describe, "delete": d.delete, "topics": d.topics,
	})
}

func limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), wire.Limit)
}

var codecs = map[string]kafka.Compression{
	"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
}

// producer id= [compression=] [c.CONFIG=]
func (d *driver) producer(args wire.Args) error {
	p := &producer{}
	p.Writer = &kafka.Writer{
		Addr: kafka.TCP(d.bootstrap), RequiredAcks: kafka.RequireAll,
		Transport: &kafka.Transport{}, // the default one keeps a list of topics that grows old
		BatchSize: 10_000, BatchTimeout: 50 * time.Millisecond,
		Compression: codecs[args.Get("compression", "none")],
		Balancer: kafka.BalancerFunc(func(message kafka.Message, _ ...int) int {
			return message.WriterData.(place).partition
		}),
		Completion: p.completed,
	}
	d.producers[args.Need("id")] = p
	return args.Config(map[string]func(string){
		"linger.ms": func(value string) { p.BatchTimeout = wire.Milliseconds(value) },
	})
}

func (p *producer) completed(messages []kafka.Message, err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, message := range messages {
		end := wire.Line{"partition": message.Partition, "offset": message.Offset,
			"timestamp": message.Time.UnixMilli()}
		if err != nil {
			end = wire.Line{"failed": err.Error()}
		}
		p.ends[message.WriterData.(place).send] = end
	}
}

// send id= topic= partition= [ts=] [key=hex] [value=hex] [h=hexname:hexvalue|-]...
func (d *driver) send(args wire.Args) error {
	p := d.producers[args.Need("id")]
	message := kafka.Message{Topic: args.Need("topic"), Key: args.Bytes("key"), Value: args.Bytes("value"),
		Time: args.Time(), WriterData: place{len(p.sends), int(args.Number("partition", 0))}}
	for _, header := range args.Headers() {
		message.Headers = append(message.Headers, kafka.Header{Key: header.Name, Value: header.Value})
	}
	p.sends = append(p.sends, message)
	return nil
}

// flush id=: one line for each send since the last flush, in the order of the sends.
func (d *driver) flush(args wire.Args) error {
	context, cancel := limited()
	defer cancel()
	p := d.producers[args.Need("id")]
	p.ends = make([]wire.Line, len(p.sends))
	err := p.WriteMessages(context, p.sends...)
	p.sends = nil
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, end := range p.ends {
		if end == nil {
			return fmt.Errorf("a record was not told of: %w", err)
		}
		wire.Emit(end)
	}
	return nil
}

func (d *driver) close(args wire.Args) error {
	p := d.producers[args.Need("id")]
	delete(d.producers, args.Need("id"))
	return p.Close()
}

func described(message kafka.Message) wire.Record {
	told := wire.Record{Topic: message.Topic, Partition: int32(message.Partition), Offset: message.Offset,
		Timestamp: message.Time, Key: message.Key, Value: message.Value}
	for _, header := range message.Headers {
		told.Headers = append(told.Headers, wire.Header{Name: header.Key, Value: header.Value})
	}
	return told
}

func (d *driver) reader(topic string, partition int, isolation kafka.IsolationLevel) *kafka.Reader {
	return kafka.NewReader(kafka.ReaderConfig{Brokers: []string{d.bootstrap}, Topic: topic,
		Partition: partition, IsolationLevel: isolation, MaxWait: 100 * time.Millisecond})
}

// read topic= [c.CONFIG=]: every record below the end of now.
func (d *driver) read(args wire.Args) error {
	context, cancel := limited()
	defer cancel()
	isolation := kafka.ReadUncommitted
	if err := args.Config(map[string]func(string){"isolation.level": func(value string) {
		if value == "read_committed" {
			isolation = kafka.ReadCommitted
		}
	}}); err != nil {
		return err
	}
	topic := args.Need("topic")
	ends, err := d.ends(context, topic)
	if err != nil {
		return err
	}
	for _, end := range ends {
		reader := d.reader(topic, end.Partition, isolation)
		defer reader.Close()
		for next := int64(0); next < end.LastOffset; {
			message, err := reader.ReadMessage(context)
			if err != nil {
				return fmt.Errorf("partition %d: %d of %d: %w", end.Partition, next, end.LastOffset, err)
			}
			wire.Emit(described(message).Line())
			next = message.Offset + 1
		}
	}
	return nil
}

func (d *driver) ends(context context.Context, topic string) ([]kafka.PartitionOffsets, error) {
	client, done := d.client()
	defer done()
	metadata, err := client.Metadata(context, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return nil, err
	}
	if metadata.Topics[0].Error != nil {
		return nil, metadata.Topics[0].Error
	}
	var requests []kafka.OffsetRequest
	for _, partition := range metadata.Topics[0].Partitions {
		requests = append(requests, kafka.LastOffsetOf(partition.ID))
	}
	listed, err := client.ListOffsets(context, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{topic: requests}})
	if err != nil {
		return nil, err
	}
	return listed.Topics[topic], nil
}

// member is one consumer of a group: the client's own ConsumerGroup, since a Reader in a group hides what it has.
type member struct {
	name     string
	driver   *driver
	assigned wire.Assigned
	group    *kafka.ConsumerGroup
	ended    chan struct{}
}

// join name= group= topics= [c.CONFIG=]: a member; its records come as events.
func (d *driver) join(args wire.Args) error {
	config := kafka.ConsumerGroupConfig{ID: args.Need("group"), Brokers: []string{d.bootstrap},
		Topics: []string{args.Need("topics")}, StartOffset: kafka.FirstOffset,
		GroupBalancers: []kafka.GroupBalancer{kafka.RangeGroupBalancer{}}}
	err := args.Config(map[string]func(string){
		"heartbeat.interval.ms": func(value string) { config.HeartbeatInterval = wire.Milliseconds(value) },
	})
	if err != nil {
		return err
	}
	m := &member{name: args.Need("name"), driver: d, ended: make(chan struct{})}
	if m.group, err = kafka.NewConsumerGroup(config); err != nil {
		return err
	}
	d.members[m.name] = m
	go m.run()
	return nil
}

func (m *member) run() {
	defer close(m.ended)
	for {
		generation, err := m.group.Next(context.Background())
		if errors.Is(err, kafka.ErrGroupClosed) {
			return
		}
		if err != nil {
			m.assigned.Fail(err)
			return
		}
		m.assigned.Clear()
		for topic, partitions := range generation.Assignments {
			for _, partition := range partitions {
				m.assigned.Add(map[string][]int32{topic: {int32(partition.ID)}})
				generation.Start(func(running context.Context) {
					m.consume(running, generation, topic, partition)
				})
			}
		}
		generation.Start(func(running context.Context) {
			<-running.Done()
			m.assigned.Clear()
		})
	}
}

func (m *member) consume(running context.Context, generation *kafka.Generation, topic string,
	from kafka.PartitionAssignment) {
	reader := m.driver.reader(topic, from.ID, kafka.ReadUncommitted)
	defer reader.Close()
	if err := reader.SetOffset(from.Offset); err != nil {
		m.assigned.Fail(err)
		return
	}
	for {
		message, err := reader.ReadMessage(running)
		if running.Err() != nil {
			return
		}
		if err == nil {
			wire.Emit(described(message).Event(m.name))
			err = generation.CommitOffsets(map[string]map[int]int64{topic: {from.ID: message.Offset + 1}})
		}
		if err != nil {
			m.assigned.Fail(err)
			return
		}
	}
}

func (d *driver) assignment(args wire.Args) error {
	return d.members[args.Need("name")].assigned.Tell()
}

func (d *driver) leave(args wire.Args) error {
	m := d.members[args.Need("name")]
	delete(d.members, args.Need("name"))
	err := m.group.Close()
	<-m.ended
	return errors.Join(err, m.assigned.Failure())
}

// client has a transport of its own: the default one keeps a list of topics that grows old.
func (d *driver) client() (*kafka.Client, func()) {
	transport := &kafka.Transport{}
	return &kafka.Client{Addr: kafka.TCP(d.bootstrap), Timeout: wire.Limit, Transport: transport},
		transport.CloseIdleConnections
}

// create topic= partitions= key= value=: a topic with one configuration of its own.
func (d *driver) create(args wire.Args) error {
	context, cancel := limited()
	defer cancel()
	client, done := d.client()
	defer done()
	topic := args.Need("topic")
	answer, err := client.CreateTopics(context, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
		Topic: topic, NumPartitions: int(args.Number("partitions", 1)), ReplicationFactor: 1,
		ConfigEntries: []kafka.ConfigEntry{
			{ConfigName: args.Need("key"), ConfigValue: args.Need("value")}},
	}}})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

// describe topic= key=: how many partitions it has and the value of that configuration.
func (d *driver) describe(args wire.Args) error {
	context, cancel := limited()
	defer cancel()
	client, done := d.client()
	defer done()
	topic := args.Need("topic")
	metadata, err := client.Metadata(context, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	found := metadata.Topics[0]
	configs, err := client.DescribeConfigs(context, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{{ResourceType: kafka.ResourceTypeTopic,
			ResourceName: topic, ConfigNames: []string{args.Need("key")}}}})
	if err != nil {
		return err
	}
	resource := configs.Resources[0]
	if err := errors.Join(found.Error, resource.Error); err != nil || len(resource.ConfigEntries) != 1 {
		return fmt.Errorf("entries %v: %w", resource.ConfigEntries, err)
	}
	wire.Emit(wire.Line{"partitions": len(found.Partitions), "value": resource.ConfigEntries[0].ConfigValue})
	return nil
}

func (d *driver) delete(args wire.Args) error {
	context, cancel := limited()
	defer cancel()
	client, done := d.client()
	defer done()
	topic := args.Need("topic")
	answer, err := client.DeleteTopics(context, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (d *driver) topics(wire.Args) error {
	context, cancel := limited()
	defer cancel()
	client, done := d.client()
	defer done()
	metadata, err := client.Metadata(context, &kafka.MetadataRequest{})
	if err != nil {
		return err
	}
	names := make([]string, 0, len(metadata.Topics))
	for _, topic := range metadata.Topics {
		names = append(names, topic.Name)
	}
	sort.Strings(names)
	wire.Emit(wire.Line{"topics": names})
	return nil
}
