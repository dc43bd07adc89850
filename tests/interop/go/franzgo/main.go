// franz-go under command: franzgo BOOTSTRAP, commands on standard input.
//
// The line protocol and the commands are those of tests/interop/java/KafkaDriver.java.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"duolog.interop/clients/wire"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type driver struct {
	bootstrap string
	producers map[string]*producer
	members   map[string]*member
}

type producer struct {
	client *kgo.Client
	id     string
	sends  []*sent
}

type sent struct {
	record *kgo.Record
	err    error
}

type member struct {
	assigned wire.Assigned
	cancel   context.CancelFunc
	ended    chan struct{}
}

func main() {
	d := &driver{os.Args[1], map[string]*producer{}, map[string]*member{}}
	wire.Serve(wire.Handlers{
		"producer": d.producer, "send": d.send, "flush": d.flush, "close": d.close, "read": d.read,
		"join": d.join, "assignment": d.assignment, "leave": d.leave,
		"init": d.init, "begin": d.begin, "commit": d.end(kgo.TryCommit), "abort": d.end(kgo.TryAbort),
		"transform": d.transform,
		"create":    d.create, "describe": d.describe, "delete": d.delete, "topics": d.topics,
	})
}

func limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), wire.Limit)
}

func isolation(options *[]kgo.Opt) func(string) {
	return func(value string) {
		if value == "read_committed" {
			*options = append(*options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
		}
	}
}

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

// producer id= [compression=] [c.CONFIG=]
func (d *driver) producer(args wire.Args) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(d.bootstrap),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[args.Get("compression", "none")]),
	}
	linger := time.Minute
	p := &producer{}
	err := args.Config(map[string]func(string){
		"linger.ms": func(value string) { linger = wire.Milliseconds(value) },
		"transactional.id": func(value string) {
			p.id = value
			options = append(options, kgo.TransactionalID(value))
		},
	})
	if err != nil {
		return err
	}
	p.client, err = kgo.NewClient(append(options, kgo.ProducerLinger(linger))...)
	d.producers[args.Need("id")] = p
	return err
}

// send id= topic= partition= [ts=] [key=hex] [value=hex] [h=hexname:hexvalue|-]...
func (d *driver) send(args wire.Args) error {
	record := &kgo.Record{Topic: args.Need("topic"), Partition: int32(args.Number("partition", 0)),
		Key: args.Bytes("key"), Value: args.Bytes("value"), Timestamp: args.Time()}
	for _, header := range args.Headers() {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
	}
	p, s := d.producers[args.Need("id")], &sent{}
	p.sends = append(p.sends, s)
	p.client.Produce(context.Background(), record, func(record *kgo.Record, err error) {
		s.record, s.err = record, err
	})
	return nil
}

// flush id=: one line for each send since the last flush, in the order of the sends.
func (d *driver) flush(args wire.Args) error {
	p := d.producers[args.Need("id")]
	context, cancel := limited()
	defer cancel()
	if err := p.client.Flush(context); err != nil {
		return err
	}
	for _, s := range p.sends {
		if s.err != nil {
			wire.Emit(wire.Line{"failed": s.err.Error()})
			continue
		}
		wire.Emit(wire.Line{"partition": s.record.Partition, "offset": s.record.Offset,
			"timestamp": s.record.Timestamp.UnixMilli()})
	}
	p.sends = nil
	return nil
}

func (d *driver) close(args wire.Args) error {
	d.producers[args.Need("id")].client.Close()
	delete(d.producers, args.Need("id"))
	return nil
}

func described(record *kgo.Record) wire.Record {
	kinds := map[int8]string{0: "CreateTime", 1: "LogAppendTime"}
	told := wire.Record{Topic: record.Topic, Partition: record.Partition, Offset: record.Offset,
		Timestamp: record.Timestamp, TimestampType: kinds[record.Attrs.TimestampType()],
		Key: record.Key, Value: record.Value}
	for _, header := range record.Headers {
		told.Headers = append(told.Headers, wire.Header{Name: header.Key, Value: header.Value})
	}
	return told
}

// read topic= [c.CONFIG=]: every record below the end of now.
func (d *driver) read(args wire.Args) error {
	context, cancel := limited()
	defer cancel()
	topic := args.Need("topic")
	options := []kgo.Opt{kgo.SeedBrokers(d.bootstrap)}
	committed := false
	if err := args.Config(map[string]func(string){"isolation.level": func(value string) {
		isolation(&options)(value)
		committed = value == "read_committed"
	}}); err != nil {
		return err
	}
	listing, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer listing.Close()
	list := kadm.NewClient(listing).ListEndOffsets
	if committed {
		list = kadm.NewClient(listing).ListCommittedOffsets
	}
	ends, err := list(context, topic)
	if err != nil {
		return err
	}
	left, start := map[int32]int64{}, map[int32]kgo.Offset{}
	ends.Each(func(end kadm.ListedOffset) {
		start[end.Partition] = kgo.NewOffset().At(0)
		if end.Offset > 0 {
			left[end.Partition] = end.Offset
		}
	})
	// Control records are kept to see the end of a partition that ends with one.
	options = append(options, kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: start}))
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	for len(left) > 0 {
		fetches := client.PollFetches(context)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("%v is left of the partitions: %w", left, err)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			if !record.Attrs.IsControl() {
				wire.Emit(described(record).Line())
			}
			if end, more := left[record.Partition]; more && record.Offset+1 >= end {
				delete(left, record.Partition)
			}
		})
	}
	return nil
}

func (d *driver) group(args wire.Args) ([]kgo.Opt, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(d.bootstrap), kgo.ConsumerGroup(args.Need("group")),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.Balancers(kgo.RangeBalancer()),
	}
	err := args.Config(map[string]func(string){
		"heartbeat.interval.ms": func(value string) {
			options = append(options, kgo.HeartbeatInterval(wire.Milliseconds(value)))
		},
		"group.protocol": func(value string) {
			if value == "consumer" {
				options = append(options, kgo.ServerSideBalancer())
			}
		},
	})
	return options, err
}

// join name= group= topics= [c.CONFIG=]: a member; its records come as events.
func (d *driver) join(args wire.Args) error {
	options, err := d.group(args)
	if err != nil {
		return err
	}
	m := &member{ended: make(chan struct{})}
	gained := func(_ context.Context, _ *kgo.Client, added map[string][]int32) { m.assigned.Add(added) }
	revoked := func(context context.Context, client *kgo.Client, gone map[string][]int32) {
		// What was told is committed before somebody else begins.
		if err := client.CommitMarkedOffsets(context); err != nil {
			m.assigned.Fail(err)
		}
		m.assigned.Remove(gone)
	}
	lost := func(_ context.Context, _ *kgo.Client, gone map[string][]int32) { m.assigned.Remove(gone) }
	client, err := kgo.NewClient(append(options, kgo.ConsumeTopics(args.Need("topics")),
		kgo.AutoCommitMarks(), kgo.BlockRebalanceOnPoll(), kgo.OnPartitionsAssigned(gained),
		kgo.OnPartitionsRevoked(revoked), kgo.OnPartitionsLost(lost))...)
	if err != nil {
		return err
	}
	var polling context.Context
	polling, m.cancel = context.WithCancel(context.Background())
	d.members[args.Need("name")] = m
	go m.run(polling, client, args.Need("name"))
	return nil
}

func (m *member) run(polling context.Context, client *kgo.Client, name string) {
	defer close(m.ended)
	for polling.Err() == nil {
		fetches := client.PollFetches(polling)
		if err := fetches.Err(); err != nil && !errors.Is(err, context.Canceled) {
			m.assigned.Fail(err)
		}
		fetches.EachRecord(func(record *kgo.Record) { wire.Emit(described(record).Event(name)) })
		client.MarkCommitRecords(fetches.Records()...)
		client.AllowRebalance()
	}
	client.Close()
}

func (d *driver) assignment(args wire.Args) error {
	return d.members[args.Need("name")].assigned.Tell()
}

func (d *driver) leave(args wire.Args) error {
	m := d.members[args.Need("name")]
	delete(d.members, args.Need("name"))
	m.cancel()
	<-m.ended
	return m.assigned.Failure()
}

func (d *driver) init(args wire.Args) error {
	context, cancel := limited()
	defer cancel()
	_, _, err := d.producers[args.Need("id")].client.ProducerID(context)
	return err
}

func (d *driver) begin(args wire.Args) error {
	return d.producers[args.Need("id")].client.BeginTransaction()
}

func (d *driver) end(how kgo.TransactionEndTry) func(wire.Args) error {
	return func(args wire.Args) error {
		context, cancel := limited()
		defer cancel()
		return d.producers[args.Need("id")].client.EndTransaction(context, how)
	}
}

// transform id= group= from= to= count= [abort=n]: copies records in transactions.
//
// The session of its own is what franz-go has for this; it takes over the producer's id.
func (d *driver) transform(args wire.Args) error {
	options, err := d.group(args)
	if err != nil {
		return err
	}
	session, err := kgo.NewGroupTransactSession(append(options, kgo.ConsumeTopics(args.Need("from")),
		kgo.TransactionalID(d.producers[args.Need("id")].id), kgo.RequireStableFetchOffsets(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return err
	}
	defer session.Close()
	context, cancel := limited()
	defer cancel()
	count, every := args.Number("count", 0), args.Number("abort", 0)
	var copied, aborted, transactions int64
	for copied < count {
		fetches := session.PollRecords(context, 7)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("%d of %d records: %w", copied, count, err)
		}
		if err := session.Begin(); err != nil {
			return err
		}
		var records []*kgo.Record
		fetches.EachRecord(func(from *kgo.Record) {
			records = append(records, &kgo.Record{Topic: args.Need("to"), Partition: from.Partition,
				Key: from.Key, Value: from.Value})
		})
		if err := session.ProduceSync(context, records...).FirstErr(); err != nil {
			return err
		}
		transactions++
		how := kgo.TryCommit
		if every > 0 && transactions%every == 0 {
			how = kgo.TryAbort
		}
		committed, err := session.End(context, how)
		if err != nil {
			return err
		}
		if committed {
			copied += int64(len(records))
		} else {
			aborted++
		}
	}
	wire.Emit(wire.Line{"copied": copied, "aborted": aborted})
	return nil
}

func (d *driver) admin(work func(context.Context, *kadm.Client) error) error {
	context, cancel := limited()
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(d.bootstrap))
	if err != nil {
		return err
	}
	defer client.Close()
	return work(context, kadm.NewClient(client))
}

// create topic= partitions= key= value=: a topic with one configuration of its own.
func (d *driver) create(args wire.Args) error {
	return d.admin(func(context context.Context, admin *kadm.Client) error {
		value := args.Need("value")
		configs := map[string]*string{args.Need("key"): &value}
		_, err := admin.CreateTopic(context, int32(args.Number("partitions", 1)), 1, configs,
			args.Need("topic"))
		return err
	})
}

// describe topic= key=: how many partitions it has and the value of that configuration.
func (d *driver) describe(args wire.Args) error {
	return d.admin(func(context context.Context, admin *kadm.Client) error {
		topics, err := admin.ListTopics(context, args.Need("topic"))
		if err != nil {
			return err
		}
		topic := topics[args.Need("topic")]
		if topic.Err != nil {
			return topic.Err
		}
		configs, err := admin.DescribeTopicConfigs(context, args.Need("topic"))
		if err != nil {
			return err
		}
		config, err := configs.On(args.Need("topic"), nil)
		if err != nil {
			return err
		}
		for _, entry := range config.Configs {
			if entry.Key == args.Need("key") {
				wire.Emit(wire.Line{"partitions": len(topic.Partitions), "value": entry.MaybeValue()})
			}
		}
		return nil
	})
}

func (d *driver) delete(args wire.Args) error {
	return d.admin(func(context context.Context, admin *kadm.Client) error {
		_, err := admin.DeleteTopic(context, args.Need("topic"))
		return err
	})
}

func (d *driver) topics(wire.Args) error {
	return d.admin(func(context context.Context, admin *kadm.Client) error {
		topics, err := admin.ListTopics(context)
		if err == nil {
			wire.Emit(wire.Line{"topics": topics.Names()})
		}
		return err
	})
}
