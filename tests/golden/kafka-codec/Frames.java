import java.io.PrintWriter;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.record.internal.MemoryRecords;

/**
 * Writes one file per API: every version of request and response as the jar encodes it, once with
 * all fields set ("set") and once with null wherever null is allowed ("null").
 *
 * Values count up from 1 in the order of the fields, so that swapped fields show.
 */
public class Frames {
    static final int CORRELATION_ID = 7;
    static final String CLIENT_ID = "golden";

    final boolean nulls;
    int counter = 0;

    Frames(boolean nulls) {
        this.nulls = nulls;
    }

    public static void main(String[] args) throws Exception {
        Path folder = Files.createDirectories(Path.of(args[0]));
        for (String name : args[1].split(",")) {
            ApiKeys key = null;
            for (ApiKeys each : ApiKeys.values()) {
                if (each.name.equals(name)) {
                    key = each;
                }
            }
            Path file = folder.resolve("%03d-%s.txt".formatted(key.id, key.name));
            try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(file))) {
                for (short v = key.oldestVersion(); v <= key.latestVersion(false); v++) {
                    for (boolean nulls : new boolean[] {false, true}) {
                        write(out, key, v, nulls);
                    }
                }
            }
        }
    }

    static void write(PrintWriter out, ApiKeys key, short version, boolean nulls) throws Exception {
        RequestHeaderData header = new RequestHeaderData()
            .setRequestApiKey(key.id)
            .setRequestApiVersion(version)
            .setCorrelationId(CORRELATION_ID)
            .setClientId(nulls ? null : CLIENT_ID);
        ApiMessage request = key.messageType.newRequest();
        new Frames(nulls).fill(request, key.messageType.requestSchemas()[version], version);
        line(out, "request", version, nulls, header, key.requestHeaderVersion(version), request);
        ApiMessage response = key.messageType.newResponse();
        new Frames(nulls).fill(response, key.messageType.responseSchemas()[version], version);
        ResponseHeaderData answer = new ResponseHeaderData().setCorrelationId(CORRELATION_ID);
        line(out, "response", version, nulls, answer, key.responseHeaderVersion(version), response);
    }

    static void line(PrintWriter out, String kind, short version, boolean nulls, Message header,
                     short headerVersion, ApiMessage body) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        int size = header.size(cache, headerVersion) + body.size(cache, version);
        ByteBuffer buffer = ByteBuffer.allocate(4 + size);
        buffer.putInt(size);
        ByteBufferAccessor accessor = new ByteBufferAccessor(buffer);
        header.write(accessor, cache, headerVersion);
        body.write(accessor, cache, version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException("size");
        }
        String variant = nulls ? "null" : "set";
        out.println(kind + " " + version + " " + variant + " " + HexFormat.of().formatHex(buffer.array()));
    }

    /** Sets the fields that the version's schema has, the tagged ones too. */
    void fill(Object message, Schema schema, short version) throws Exception {
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged) {
                for (Field field : tagged.fields().values()) {
                    set(message, field, version);
                }
            } else {
                set(message, bound.def, version);
            }
        }
    }

    void set(Object message, Field field, short version) throws Exception {
        StringBuilder name = new StringBuilder("set");
        for (String word : field.name.split("_")) {
            name.append(Character.toUpperCase(word.charAt(0))).append(word.substring(1));
        }
        for (Method method : message.getClass().getMethods()) {
            if (method.getName().equals(name.toString()) && method.getParameterCount() == 1) {
                boolean isNull = nulls && field.type.isNullable();
                Object value = isNull ? null : value(method.getGenericParameterTypes()[0], field.type, version);
                method.invoke(message, value);
                return;
            }
        }
        throw new IllegalStateException(message.getClass() + " has no " + name);
    }

    Object value(Type type, org.apache.kafka.common.protocol.types.Type wire, short version) throws Exception {
        if (type == boolean.class) return true;
        int number = ++counter;
        if (type == byte.class || type == Byte.class) return (byte) number;
        if (type == short.class || type == Short.class) return (short) number;
        if (type == int.class || type == Integer.class) return number;
        if (type == long.class || type == Long.class) return (long) number;
        if (type == double.class || type == Double.class) return (double) number;
        if (type == String.class) return "s" + number;
        if (type == Uuid.class) return new Uuid(number, number);
        if (type == byte[].class) return new byte[] {(byte) number, 0, (byte) 255};
        if (type == ByteBuffer.class) return ByteBuffer.wrap(new byte[] {(byte) number, 0, (byte) 255});
        if (type.getTypeName().endsWith("BaseRecords")) return MemoryRecords.readableRecords(blob(number));
        if (type instanceof ParameterizedType list) {
            List<Object> values = new ArrayList<>();
            values.add(element(list.getActualTypeArguments()[0], wire, version));
            return values;
        }
        Class<?> found = (Class<?>) type;
        if (Collection.class.isAssignableFrom(found)) {
            Type element = ((ParameterizedType) found.getGenericSuperclass()).getActualTypeArguments()[0];
            @SuppressWarnings("unchecked")
            Collection<Object> values = (Collection<Object>) found.getDeclaredConstructor().newInstance();
            values.add(element(element, wire, version));
            return values;
        }
        return struct(found, version);
    }

    Object element(Type type, org.apache.kafka.common.protocol.types.Type wire, short version) throws Exception {
        Class<?> found = (Class<?>) type;
        return Message.class.isAssignableFrom(found) ? struct(found, version) : value(found, wire, version);
    }

    Object struct(Class<?> type, short version) throws Exception {
        Object struct = type.getDeclaredConstructor().newInstance();
        Schema[] schemas = (Schema[]) type.getField("SCHEMAS").get(null);
        fill(struct, schemas[version], version);
        return struct;
    }

    /** Longer than what the codec copies, so that it travels as a segment of its own. */
    static ByteBuffer blob(int number) {
        byte[] bytes = new byte[140];
        java.util.Arrays.fill(bytes, (byte) number);
        return ByteBuffer.wrap(bytes);
    }
}
