// kafkajs under command: driver.js BOOTSTRAP, commands on standard input. MODULES names the folder of its modules.
//
// The line protocol and the commands are those of tests/interop/java/KafkaDriver.java. `read` needs topics whose
// partitions end with a record that is shown: this consumer does not tell its position.
'use strict'
const path = require('path')
const readline = require('readline')

const from = name => require(path.join(process.env.MODULES, name))
const kafkajs = from('kafkajs')
const { CompressionTypes, CompressionCodecs } = kafkajs
const lz4 = from('lz4-napi')
const { ZstdCodec } = from('zstd-codec')

const LIMIT_MS = 60_000

// ---- the line protocol
const emit = line => process.stdout.write(JSON.stringify(line) + '\n')
const hexed = bytes => (bytes == null ? null : Buffer.from(bytes).toString('hex'))
const unhex = text => Buffer.from(text, 'hex')

class Args {
  constructor (line) {
    this.words = line.split(' ').filter(word => word.includes('='))
      .map(word => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)])
  }

  get (key, fallback = null) {
    const word = this.words.find(([name]) => name === key)
    return word ? word[1] : fallback
  }

  need (key) {
    const value = this.get(key)
    if (value === null) throw new Error(`the command lacks ${key}=`)
    return value
  }

  bytes (key) {
    const value = this.get(key)
    return value === null ? null : unhex(value)
  }

  // A name that comes twice has a list of values: the client keeps no other order.
  headers () {
    const headers = {}
    for (const [, pair] of this.words.filter(([name]) => name === 'h')) {
      const [name, value] = pair.split(':')
      const key = unhex(name).toString()
      const bytes = value === '-' ? null : unhex(value)
      headers[key] = key in headers ? [headers[key], bytes].flat() : bytes
    }
    return headers
  }

  // What c. sets, by the client's names; another name is an error.
  config (names) {
    const config = {}
    for (const [word, value] of this.words.filter(([name]) => name.startsWith('c.'))) {
      const read = names[word.slice(2)]
      if (!read) throw new Error(`this driver does not set ${word.slice(2)}`)
      Object.assign(config, read(value))
    }
    return config
  }
}

// ---- codecs that the client leaves to its users
CompressionCodecs[CompressionTypes.Snappy] = from('kafkajs-snappy')
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: encoder => lz4.compressFrame(encoder.buffer),
  decompress: buffer => lz4.decompressFrame(buffer)
})
// Streaming, since a frame need not tell how long it gets.
const zstd = new Promise(resolve => ZstdCodec.run(module => resolve(new module.Streaming())))
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from((await zstd).compress(encoder.buffer)),
  decompress: async buffer => Buffer.from((await zstd).decompress(buffer))
})
const CODECS = { none: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 }

// ---- commands
const kafka = new kafkajs.Kafka({
  brokers: [process.argv[2]],
  clientId: 'driver',
  logLevel: kafkajs.logLevel.WARN,
  logCreator: () => ({ log, label }) => process.stderr.write(`${label} ${JSON.stringify(log)}\n`)
})
const producers = {}
const members = {}

// Short waits at the end of a log: who leaves waits for the last fetch.
const consuming = args => ({ maxWaitTimeInMs: 200, ...args.config(GROUP) })
const GROUP = {
  'heartbeat.interval.ms': value => ({ heartbeatInterval: Number(value) }),
  'isolation.level': value => ({ readUncommitted: value !== 'read_committed' })
}

function described (topic, partition, message) {
  const headers = Object.entries(message.headers || {}).flatMap(([name, values]) =>
    [values].flat().map(value => [hexed(name), hexed(value)]))
  return {
    topic,
    partition,
    offset: Number(message.offset),
    timestamp: Number(message.timestamp),
    timestampType: null, // not told
    key: hexed(message.key),
    value: hexed(message.value),
    headers
  }
}

function limited (what, promise) {
  let timer
  const late = new Promise((resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not in time`)), LIMIT_MS)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

async function withAdmin (work) {
  const admin = kafka.admin()
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.disconnect()
  }
}

// Each partition's last record below the end of now; the client's ends are of what is there, markers included.
async function lastOffsets (topic) {
  const ends = await withAdmin(admin => admin.fetchTopicOffsets(topic))
  return new Map(ends.filter(end => Number(end.high) > 0)
    .map(end => [end.partition, Number(end.high) - 1]))
}

const commands = {
  // producer id= [compression=] [c.CONFIG=]: records wait for `flush`.
  async producer (args) {
    const config = args.config({
      'linger.ms': () => ({}), // what is flushed is sent at once
      'transactional.id': value => ({ transactionalId: value, idempotent: true, maxInFlightRequests: 1 })
    })
    const producer = kafka.producer({ ...config, createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
    producers[args.need('id')] = {
      producer, sends: [], compression: CODECS[args.get('compression', 'none')], transaction: null
    }
    if (!config.transactionalId) await producer.connect()
  },

  // send id= topic= partition= [ts=] [key=hex] [value=hex] [h=hexname:hexvalue|-]...
  async send (args) {
    const message = {
      key: args.bytes('key'),
      value: args.bytes('value'),
      partition: Number(args.need('partition')),
      headers: args.headers()
    }
    if (args.get('ts')) message.timestamp = args.get('ts')
    producers[args.need('id')].sends.push({ topic: args.need('topic'), message })
  },

  // flush id=: one line for each send since the last flush, in the order of the sends.
  async flush (args) {
    const own = producers[args.need('id')]
    const sends = own.sends.splice(0)
    const topics = [...new Set(sends.map(send => send.topic))]
    const topicMessages = topics.map(topic => ({
      topic, messages: sends.filter(send => send.topic === topic).map(send => send.message)
    }))
    const next = new Map()
    try {
      const answers = await (own.transaction || own.producer).sendBatch(
        { topicMessages, compression: own.compression, acks: -1 })
      for (const { topicName, partition, baseOffset } of answers) {
        next.set(`${topicName}-${partition}`, Number(baseOffset))
      }
    } catch (error) {
      sends.forEach(() => emit({ failed: String(error) }))
      return
    }
    for (const { topic, message } of sends) { // the client tells a batch's first offset
      const place = `${topic}-${message.partition}`
      const offset = next.get(place)
      next.set(place, offset + 1)
      emit({ partition: message.partition, offset, timestamp: Number(message.timestamp) })
    }
  },

  async close (args) {
    await producers[args.need('id')].producer.disconnect()
    delete producers[args.need('id')]
  },

  // read topic= [c.CONFIG=]: every record below the end of now, as the only member of a group of its own.
  async read (args) {
    const topic = args.need('topic')
    const left = await lastOffsets(topic)
    if (left.size === 0) return
    const groupId = `reader-of-${topic}-${Date.now()}`
    const consumer = kafka.consumer({ groupId, ...consuming(args) })
    await consumer.connect()
    try {
      await consumer.subscribe({ topics: [topic], fromBeginning: true })
      await limited('read', new Promise((resolve, reject) => {
        consumer.on(consumer.events.CRASH, event => reject(event.payload.error))
        consumer.run({
          autoCommit: false,
          eachMessage: async ({ partition, message }) => {
            emit(described(topic, partition, message))
            if (Number(message.offset) >= left.get(partition)) left.delete(partition)
            if (left.size === 0) resolve()
          }
        }).catch(reject)
      }))
    } finally {
      await consumer.disconnect()
    }
  },

  // join name= group= topics= [c.CONFIG=]: a member; its records come as events.
  async join (args) {
    const name = args.need('name')
    const consumer = kafka.consumer({ groupId: args.need('group'), ...consuming(args) })
    const member = { consumer, assigned: [], failure: null }
    members[name] = member
    await consumer.connect()
    await consumer.subscribe({ topics: args.need('topics').split(','), fromBeginning: true })
    consumer.on(consumer.events.GROUP_JOIN, event => {
      member.assigned = Object.entries(event.payload.memberAssignment)
        .flatMap(([topic, partitions]) => partitions.map(partition => `${topic}-${partition}`))
    })
    consumer.on(consumer.events.REBALANCING, () => { member.assigned = [] })
    consumer.on(consumer.events.CRASH, event => { member.failure = event.payload.error })
    await consumer.run({
      autoCommitThreshold: 1,
      eachMessage: async ({ topic, partition, message }) => {
        emit({ ...described(topic, partition, message), event: 'record', member: name })
      }
    })
  },

  async assignment (args) {
    const { assigned, failure } = members[args.need('name')]
    if (failure) throw failure
    emit({ partitions: [...assigned].sort() })
  },

  async leave (args) {
    const { consumer, failure } = members[args.need('name')]
    delete members[args.need('name')]
    await consumer.disconnect()
    if (failure) throw failure
  },

  async init (args) { await producers[args.need('id')].producer.connect() },

  async begin (args) {
    const own = producers[args.need('id')]
    own.transaction = await own.producer.transaction()
  },

  async commit (args) {
    const own = producers[args.need('id')]
    await own.transaction.commit()
    own.transaction = null
  },

  async abort (args) {
    const own = producers[args.need('id')]
    await own.transaction.abort()
    own.transaction = null
  },

  // transform id= group= from= to= count= [abort=n]: copies records in transactions.
  async transform (args) {
    const { producer } = producers[args.need('id')]
    const [group, topic, to] = ['group', 'from', 'to'].map(key => args.need(key))
    const [count, every] = [Number(args.need('count')), Number(args.get('abort', '0'))]
    const told = { copied: 0, aborted: 0 }
    let transactions = 0
    const consumer = kafka.consumer({ groupId: group, ...consuming(args), readUncommitted: false })
    await consumer.connect()
    const copy = async (partition, messages) => {
      const transaction = await producer.transaction()
      await transaction.send({
        topic: to, messages: messages.map(({ key, value }) => ({ key, value, partition }))
      })
      const offset = String(Number(messages[messages.length - 1].offset) + 1)
      await transaction.sendOffsets(
        { consumerGroupId: group, topics: [{ topic, partitions: [{ partition, offset }] }] })
      transactions += 1
      if (every && transactions % every === 0) {
        await transaction.abort()
        told.aborted += 1
        return false
      }
      await transaction.commit()
      told.copied += messages.length
      return true
    }
    try {
      await consumer.subscribe({ topics: [topic], fromBeginning: true })
      await limited('transform', new Promise((resolve, reject) => {
        consumer.on(consumer.events.CRASH, event => reject(event.payload.error))
        consumer.run({
          autoCommit: false,
          eachBatchAutoResolve: false,
          eachBatch: async ({ batch, resolveOffset }) => {
            for (let at = 0; at < batch.messages.length; at += 7) {
              const messages = batch.messages.slice(at, at + 7)
              while (!await copy(batch.partition, messages)); // what was aborted once more
              resolveOffset(messages[messages.length - 1].offset)
            }
            if (told.copied >= count) resolve()
          }
        }).catch(reject)
      }))
    } finally {
      await consumer.disconnect()
    }
    emit(told)
  },

  // create topic= partitions= key= value=: a topic with one configuration of its own.
  async create (args) {
    await withAdmin(admin => admin.createTopics({
      waitForLeaders: true,
      topics: [{
        topic: args.need('topic'),
        numPartitions: Number(args.need('partitions')),
        replicationFactor: 1,
        configEntries: [{ name: args.need('key'), value: args.need('value') }]
      }]
    }))
  },

  // describe topic= key=: how many partitions it has and the value of that configuration.
  async describe (args) {
    const name = args.need('topic')
    await withAdmin(async admin => {
      const { topics: [found] } = await admin.fetchTopicMetadata({ topics: [name] })
      const { resources: [resource] } = await admin.describeConfigs({
        includeSynonyms: false,
        resources: [{ type: kafkajs.ConfigResourceTypes.TOPIC, name, configNames: [args.need('key')] }]
      })
      emit({ partitions: found.partitions.length, value: resource.configEntries[0].configValue })
    })
  },

  async delete (args) { await withAdmin(admin => admin.deleteTopics({ topics: [args.need('topic')] })) },

  async topics () { emit({ topics: (await withAdmin(admin => admin.listTopics())).sort() }) }
}

async function main () {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const verb = line.split(' ', 1)[0]
    try {
      if (!(verb in commands)) throw new Error(`no such command: ${verb}`)
      await commands[verb](new Args(line.slice(verb.length + 1)))
      if (verb !== 'send') emit({ done: true }) // `flush` tells how it ended
    } catch (error) {
      emit({ error: String(error.stack || error) })
    }
  }
  process.exit(0)
}

main()
