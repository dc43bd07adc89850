import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.PrintWriter;
import java.lang.reflect.Method;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Sends the requests of a cases file to a broker, in order, and writes down what it answers. The
 * file that is written can be read again: earlier answers in it are passed over.
 *
 * A case is a line `API VERSION JSON`; lines that start with # and empty ones are copied; at the
 * line `# wait` two seconds pass, in which a dynamic configuration reaches all parts of the peer.
 * `@NAME@` in the JSON stands for the topic id that an earlier answer gave the topic NAME,
 * `@S1S@` stands for the first fetch session that an answer names, `@S2S@` for the second. Each
 * case comes out as two lines more: `> ` and `< ` with the frames (without length) in hex. The
 * answers go to standard output as JSON.
 */
public class Cases {
    static final Map<String, String> topicIds = new HashMap<>();
    static final List<Integer> sessions = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        String[] address = args[0].split(":");
        try (Socket socket = new Socket(address[0], Integer.parseInt(address[1]));
             BufferedReader cases = Files.newBufferedReader(Path.of(args[1]));
             PrintWriter out = new PrintWriter(Files.newBufferedWriter(Path.of(args[2])))) {
            for (String line = cases.readLine(); line != null; line = cases.readLine()) {
                if (line.startsWith("> ") || line.startsWith("< ")) {
                    continue;
                }
                out.println(line);
                if (line.equals("# wait")) {
                    Thread.sleep(2000);
                } else if (!line.isEmpty() && !line.startsWith("#")) {
                    run(socket, line.split(" ", 3), out);
                }
            }
        }
    }

    static void run(Socket socket, String[] words, PrintWriter out) throws Exception {
        ApiKeys key = null;
        for (ApiKeys each : ApiKeys.values()) {
            if (each.name.equals(words[0])) {
                key = each;
            }
        }
        short version = Short.parseShort(words[1]);
        String json = words[2];
        for (Map.Entry<String, String> topic : topicIds.entrySet()) {
            json = json.replace("@" + topic.getKey() + "@", topic.getValue());
        }
        for (int at = 0; at < sessions.size(); at++) {
            json = json.replace("@S" + (at + 1) + "S@", sessions.get(at).toString());
        }
        ApiMessage request = (ApiMessage) converter(key, "Request", "read", 2)
            .invoke(null, new ObjectMapper().readTree(json), version);
        RequestHeaderData header = new RequestHeaderData().setRequestApiKey(key.id)
            .setRequestApiVersion(version).setCorrelationId(7).setClientId("cases");
        byte[] frame = frame(header, key.requestHeaderVersion(version), request, version);
        socket.getOutputStream().write(frame);
        DataInputStream in = new DataInputStream(socket.getInputStream());
        byte[] answer = new byte[in.readInt()];
        in.readFully(answer);
        out.println("> " + HexFormat.of().formatHex(frame, 4, frame.length));
        out.println("< " + HexFormat.of().formatHex(answer));
        ByteBufferAccessor accessor = new ByteBufferAccessor(ByteBuffer.wrap(answer));
        new ResponseHeaderData(accessor, key.responseHeaderVersion(version));
        ApiMessage response = key.messageType.newResponse();
        response.read(accessor, version);
        JsonNode shown = (JsonNode) converter(key, "Response", "write", 2).invoke(null, response, version);
        System.out.println(String.join(" ", words) + "\n  " + shown);
        for (JsonNode topic : shown.path("topics")) {
            String id = topic.path("topicId").asText();
            if (topic.has("name") && !id.isEmpty() && !id.equals("AAAAAAAAAAAAAAAAAAAAAA")) {
                topicIds.put(topic.get("name").asText(), id);
            }
        }
        int session = shown.path("sessionId").asInt();
        if (session != 0 && !sessions.contains(session)) {
            sessions.add(session);
        }
    }

    static Method converter(ApiKeys key, String kind, String name, int parameters) throws Exception {
        String path = "org.apache.kafka.common.message." + key.name + kind + "DataJsonConverter";
        for (Method method : Class.forName(path).getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == parameters) {
                return method;
            }
        }
        throw new IllegalStateException(path);
    }

    static byte[] frame(RequestHeaderData header, short headerVersion, ApiMessage body, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        int size = header.size(cache, headerVersion) + body.size(cache, version);
        ByteBuffer buffer = ByteBuffer.allocate(4 + size);
        buffer.putInt(size);
        ByteBufferAccessor accessor = new ByteBufferAccessor(buffer);
        header.write(accessor, cache, headerVersion);
        body.write(accessor, cache, version);
        return buffer.array();
    }
}
