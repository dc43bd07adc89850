import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Random;
import java.util.zip.CRC32C;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.xerial.snappy.Snappy;

/**
 * Writes record batches with Kafka's own classes: NAME.bin holds the bytes, NAME.txt what Kafka's own reader
 * says of them. The argument is the folder to write to.
 */
public class MakeBatches {
    static final long TIME = 1_700_000_000_000L;
    static final int HEADER_BYTES = 61;
    static final Header[] NO_HEADERS = {};
    static Path folder;

    public static void main(String[] args) throws IOException {
        folder = Path.of(args[0]);
        for (CompressionType type : CompressionType.values()) {
            Compression compression = Compression.of(type).build();
            write("plain-" + type.name, plain(compression));
            write("large-" + type.name, large(compression));
            write("many-" + type.name, many(compression));
        }
        write("unframed-snappy", unframedSnappy());
        write("idempotent", producer(false, Compression.NONE, 0));
        write("transactional", producer(true, Compression.NONE, Integer.MAX_VALUE));
        write("transactional-zstd", producer(true, Compression.zstd().build(), 12));
        write("log-append-time", appendTime(Compression.NONE));
        write("log-append-time-lz4", appendTime(Compression.lz4().build()));
        write("compacted", compacted(Compression.NONE));
        write("compacted-gzip", compacted(Compression.gzip().build()));
        write("commit-marker", marker(ControlRecordType.COMMIT));
        write("abort-marker", marker(ControlRecordType.ABORT));
        write("leader-change", MemoryRecords.withLeaderChangeMessage(40, TIME, 5, ByteBuffer.allocate(512),
            new LeaderChangeMessage().setLeaderId(3)).buffer());
        ByteBuffer both = ByteBuffer.allocate(1 << 20);
        both.put(plain(Compression.NONE)).put(plain(Compression.snappy().build())).flip();
        write("two-batches", both);
    }

    /** Null, empty and full keys and values, headers of every kind, times that go back, and a record without one. */
    static ByteBuffer plain(Compression compression) {
        MemoryRecordsBuilder builder = builder(compression, TimestampType.CREATE_TIME, -1, -1);
        builder.append(TIME, utf8("key"), utf8("value"), NO_HEADERS);
        builder.append(TIME + 900, null, utf8("no key"), NO_HEADERS);
        builder.append(TIME - 100, utf8("tombstone"), null, NO_HEADERS);
        builder.append(TIME + 900, (byte[]) null, null, NO_HEADERS);
        builder.append(-1, new byte[0], new byte[0], NO_HEADERS);
        builder.append(TIME + 1, utf8("h"), utf8("with headers"), new Header[] {
            new RecordHeader("TAGS", utf8("a")), new RecordHeader("TAGS", utf8("b")),
            new RecordHeader("", new byte[0]), new RecordHeader("null", (byte[]) null),
            new RecordHeader("schlüssel", new byte[] {0, 1, (byte) 0xff})});
        return builder.build().buffer();
    }

    /** Larger than the blocks of every codec, with a part that does not compress. */
    static ByteBuffer large(Compression compression) {
        MemoryRecordsBuilder builder = builder(compression, TimestampType.CREATE_TIME, 3, 77);
        byte[] noise = new byte[1500];
        new Random(1).nextBytes(noise);
        builder.append(TIME, utf8("noise"), noise, NO_HEADERS);
        byte[] text = new byte[90_000];
        for (int i = 0; i < text.length; i++)
            text[i] = (byte) ('a' + i % 26 + (i / 1000) % 3);
        if (compression.type() != CompressionType.NONE)
            builder.append(TIME, utf8("text"), text, NO_HEADERS);
        return builder.build().buffer();
    }

    /** Enough records that offset deltas and timestamp deltas take several bytes. */
    static ByteBuffer many(Compression compression) {
        MemoryRecordsBuilder builder = builder(compression, TimestampType.CREATE_TIME, 0, 1L << 40);
        for (int i = 0; i < 150; i++)
            builder.append(TIME + (long) i * i * i, utf8("k" + i), utf8("v".repeat(i % 70)), NO_HEADERS);
        return builder.build().buffer();
    }

    /** Raw snappy without the framing of snappy-java, as some other clients write it. */
    static ByteBuffer unframedSnappy() throws IOException {
        ByteBuffer plain = plain(Compression.NONE);
        byte[] records = new byte[plain.remaining() - HEADER_BYTES];
        plain.duplicate().position(HEADER_BYTES).get(records);
        byte[] packed = Snappy.compress(records);
        ByteBuffer batch = ByteBuffer.allocate(HEADER_BYTES + packed.length);
        batch.put(plain.duplicate().limit(HEADER_BYTES)).put(packed).flip();
        batch.putInt(8, batch.remaining() - 12).putShort(21, (short) CompressionType.SNAPPY.id);
        CRC32C crc = new CRC32C();
        crc.update(batch.duplicate().position(21));
        return batch.putInt(17, (int) crc.getValue());
    }

    static ByteBuffer producer(boolean transactional, Compression compression, int sequence) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1 << 20),
            RecordBatch.MAGIC_VALUE_V2, compression, TimestampType.CREATE_TIME, 100, RecordBatch.NO_TIMESTAMP,
            9_000_000_001L, (short) 4, sequence, transactional, 12);
        for (int i = 0; i < 3; i++)
            builder.append(TIME + i, utf8("key" + i), utf8("value" + i), NO_HEADERS);
        return builder.build().buffer();
    }

    static ByteBuffer appendTime(Compression compression) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1 << 20),
            RecordBatch.MAGIC_VALUE_V2, compression, TimestampType.LOG_APPEND_TIME, 0, TIME + 5000);
        for (int i = 0; i < 3; i++)
            builder.append(TIME + i, utf8("key" + i), utf8("value" + i), NO_HEADERS);
        return builder.build().buffer();
    }

    /** Gaps between the offsets, none at the end, and a delete horizon. */
    static ByteBuffer compacted(Compression compression) {
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(new ByteBufferOutputStream(1 << 20),
            RecordBatch.MAGIC_VALUE_V2, compression, TimestampType.CREATE_TIME, 1000, RecordBatch.NO_TIMESTAMP,
            RecordBatch.NO_PRODUCER_ID, RecordBatch.NO_PRODUCER_EPOCH, RecordBatch.NO_SEQUENCE, false, false, 2,
            1 << 20, TIME + 86_400_000);
        builder.appendWithOffset(1002, TIME, utf8("a"), utf8("1"));
        builder.appendWithOffset(1003, TIME + 1, utf8("b"), utf8("2"));
        builder.appendWithOffset(1700, TIME + 2, utf8("c"), null);
        builder.overrideLastOffset(1999);
        return builder.build().buffer();
    }

    static ByteBuffer marker(ControlRecordType type) {
        return MemoryRecords.withEndTransactionMarker(0, TIME, -1, 9_000_000_001L, (short) 4,
            new EndTransactionMarker(type, 21)).buffer();
    }

    static MemoryRecordsBuilder builder(Compression compression, TimestampType type, int leaderEpoch, long base) {
        return MemoryRecords.builder(ByteBuffer.allocate(1 << 20), RecordBatch.MAGIC_VALUE_V2, compression, type,
            Math.max(base, 0), RecordBatch.NO_TIMESTAMP, leaderEpoch);
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static void write(String name, ByteBuffer buffer) throws IOException {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        StringBuilder text = new StringBuilder();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batches())
            describe((DefaultRecordBatch) batch, text);
        Files.write(folder.resolve(name + ".bin"), bytes);
        Files.writeString(folder.resolve(name + ".txt"), text);
    }

    static void describe(DefaultRecordBatch batch, StringBuilder text) {
        batch.ensureValid();
        text.append("batch base=").append(batch.baseOffset()).append(" last=").append(batch.lastOffset())
            .append(" size=").append(batch.sizeInBytes()).append(" leaderEpoch=").append(batch.partitionLeaderEpoch())
            .append(" crc=").append(batch.checksum()).append(" compression=").append(batch.compressionType().name)
            .append(" time=").append(batch.timestampType().name).append(" baseTimestamp=")
            .append(batch.baseTimestamp()).append(" maxTimestamp=").append(batch.maxTimestamp())
            .append(" producer=").append(batch.producerId()).append('/').append(batch.producerEpoch())
            .append(" sequence=").append(batch.baseSequence()).append("..").append(batch.lastSequence())
            .append(" count=").append(batch.countOrNull()).append(" transactional=").append(batch.isTransactional())
            .append(" control=").append(batch.isControlBatch()).append(" deleteHorizon=")
            .append(batch.deleteHorizonMs().isPresent() ? batch.deleteHorizonMs().getAsLong() : "none").append('\n');
        for (Record record : batch) {
            text.append("record offset=").append(record.offset()).append(" timestamp=").append(record.timestamp())
                .append(" key=").append(show(record.key())).append(" value=").append(show(record.value()));
            for (Header header : record.headers())
                text.append(" header=").append(show(ByteBuffer.wrap(utf8(header.key())))).append(':')
                    .append(show(header.value() == null ? null : ByteBuffer.wrap(header.value())));
            if (batch.isControlBatch())
                text.append(" type=").append(ControlRecordType.parse(record.key()));
            text.append('\n');
        }
    }

    /** Hex, or length and CRC-32C of what is long. */
    static String show(ByteBuffer buffer) {
        if (buffer == null)
            return "null";
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        if (bytes.length <= 40)
            return "'" + HexFormat.of().formatHex(bytes) + "'";
        CRC32C crc = new CRC32C();
        crc.update(bytes);
        return bytes.length + "/" + crc.getValue();
    }
}
