import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.ServerSocket;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Asks Kafka's own classes what they take. A line is a kind and settings, with tabs between:
 * `setting` judges one by its definition, `brokers` a configuration whole, for both roles, and
 * `topic` a topic's, where settings of brokers begin with `broker:`. Answers a line each: "ok", or
 * why not; at first the definitions.
 */
public class KafkaVerdicts {
    static final Map<String, String> COMMON = Map.of(
        "controller.quorum.voters", "0@h:9090",
        "controller.listener.names", "C",
        "listener.security.protocol.map", "C:PLAINTEXT,R:PLAINTEXT",
        "log.dirs", "/tmp/unused");

    public static void main(String[] arguments) throws Exception {
        define("brokers", KafkaConfig.configDef());
        define("topic", LogConfig.configDefCopy());
        System.out.println("end");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            System.out.println(verdict(line.split("\t", -1)));
        }
    }

    static void define(String whose, ConfigDef definition) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(definition.configKeys()).values()) {
            System.out.printf("%s\t%s\t%s%n", whose, key.name, key.defaultValue);
        }
    }

    static String verdict(String[] fields) {
        Properties broker = new Properties();
        Properties topic = new Properties();
        for (int i = 1; i < fields.length; i++) {
            String[] said = fields[i].split("=", 2);
            if (fields[0].equals("topic") && !said[0].startsWith("broker:")) {
                topic.put(said[0], said[1]);
            } else {
                broker.put(said[0].replace("broker:", ""), said[1]);
            }
        }
        try {
            switch (fields[0]) {
                case "setting" -> setting(broker);
                case "brokers" -> brokers(broker);
                default -> topic(topic, broker);
            }
            return "ok";
        } catch (Throwable refusal) {
            return ("no " + refusal).replace("\n", " ");
        }
    }

    static void setting(Properties alone) throws Exception {
        for (String name : alone.stringPropertyNames()) {
            ConfigDef.ConfigKey key = KafkaConfig.configDef().configKeys().get(name);
            Object value = ConfigDef.parseType(name, alone.getProperty(name), key.type);
            if (key.validator != null) {
                key.validator.ensureValid(name, value);
            }
        }
    }

    static void brokers(Properties given) throws Exception {
        of(given, "controller", "C");
        KafkaConfig config = of(given, "broker", "R");
        // LogManager.apply, and what else a node does with these before it is there.
        LogConfig.validateBrokerLogConfigValues(config.extractLogConfigMap(), tiered(given));
        new LogConfig(config.extractLogConfigMap());
        segments("segment.ms", config.getLong("metadata.log.segment.ms"));
        for (String topic : new String[] {"offsets.topic", "transaction.state.log", "share.coordinator.state.topic"}) {
            segments("segment.bytes", config.getInt(topic + ".segment.bytes"));
        }
        Sensor.RecordingLevel.forName(config.getString("metrics.recording.level"));
        for (String way : new String[] {"send", "receive"}) {
            int bytes = config.getInt("socket." + way + ".buffer.bytes");
            if (bytes != -1) {
                try (ServerSocket socket = new ServerSocket()) {
                    socket.setReceiveBufferSize(bytes);
                }
            }
        }
        if (tiered(given) && config.getString("remote.log.storage.manager.class.name") == null) {
            throw new NullPointerException("RemoteLogManager makes the class by its name");
        }
    }

    static void segments(String setting, Object value) {
        Properties topic = new Properties();
        topic.put(setting, value.toString());
        LogConfig.validate(topic);
    }

    static void topic(Properties topic, Properties given) throws Exception {
        KafkaConfig config = of(given, "broker", "R");
        LogConfig.validate(Map.of(), topic, config.extractLogConfigMap(), tiered(given));
    }

    static boolean tiered(Properties given) {
        return Boolean.parseBoolean(given.getProperty("remote.log.storage.system.enable", "").trim());
    }

    static KafkaConfig of(Properties given, String role, String listener) {
        Properties all = new Properties();
        all.putAll(COMMON);
        all.put("process.roles", role);
        all.put("node.id", role.equals("broker") ? "10" : "0");
        all.put("listeners", listener + "://h:9090");
        if (role.equals("broker")) {
            all.put("inter.broker.listener.name", listener);
        }
        all.putAll(given);
        return KafkaConfig.fromProps(all, false);
    }
}
