import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.GroupRebalanceConfig;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.internals.Heartbeat;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.runtime.WorkerConfig;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;
import org.apache.kafka.connect.storage.KafkaOffsetBackingStore;
import org.apache.kafka.connect.storage.KafkaStatusBackingStore;
import org.apache.kafka.connect.util.KafkaBasedLog;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Asks Kafka Connect's own classes what they take. A line is a worker's settings, with tabs between;
 * it is answered by "ok", or why no worker or no task would start. At first the definitions.
 */
public class ConnectVerdicts {
    static final String BYTES = "org.apache.kafka.common.serialization.ByteArray";
    static final Map<String, String> COMMON = Map.of(
        "bootstrap.servers", "127.0.0.1:1",
        "group.id", "g",
        "key.converter", JsonConverter.class.getName(),
        "value.converter", JsonConverter.class.getName(),
        "config.storage.topic", "c",
        "offset.storage.topic", "o",
        "status.storage.topic", "s");
    static final Map<String, String> OF_SOURCES = Map.of(
        "bootstrap.servers", "127.0.0.1:1",
        "key.serializer", BYTES + "Serializer",
        "value.serializer", BYTES + "Serializer",
        "max.block.ms", Long.toString(Long.MAX_VALUE),
        "enable.idempotence", "false",
        "acks", "all",
        "max.in.flight.requests.per.connection", "1",
        "delivery.timeout.ms", Integer.toString(Integer.MAX_VALUE));
    static final Map<String, String> OF_SINKS = Map.of(
        "bootstrap.servers", "127.0.0.1:1",
        "group.id", "connect-c",
        "enable.auto.commit", "false",
        "auto.offset.reset", "earliest",
        "key.deserializer", BYTES + "Deserializer",
        "value.deserializer", BYTES + "Deserializer");

    static final Set<String> TIMES = Set.of(
        "delivery.timeout.ms", "request.timeout.ms", "linger.ms", "session.timeout.ms", "heartbeat.interval.ms");
    static boolean ofPairs;

    public static void main(String[] arguments) throws Exception {
        Class<?> crypto = Class.forName("org.apache.kafka.connect.runtime.distributed.Crypto");
        Method worker = DistributedConfig.class.getDeclaredMethod("config", crypto);
        worker.setAccessible(true);
        define("worker", (ConfigDef) worker.invoke(null, crypto.getField("SYSTEM").get(null)));
        define("producer.", ProducerConfig.configDef());
        define("consumer.", ConsumerConfig.configDef());
        define("admin.", AdminClientConfig.configDef());
        System.out.println("end");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            System.out.println(verdict(line.split("\t", -1)));
        }
        System.exit(0);
    }

    static void define(String whose, ConfigDef definition) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(definition.configKeys()).values()) {
            System.out.printf("%s\t%s\t%s%n", whose, key.name, key.defaultValue);
        }
    }

    static String verdict(String[] fields) {
        Map<String, String> given = new HashMap<>(COMMON);
        boolean ofTasks = true;
        ofPairs = false;
        for (String each : fields) {
            String[] said = each.split("=", 2);
            given.put(said[0], said[1]);
            ofPairs |= TIMES.contains(said[0].replaceFirst("^(producer|consumer)\\.", ""));
            ofTasks &= said[0].matches("(producer|consumer|admin)\\..*");
        }
        try {
            DistributedConfig config = new DistributedConfig(given);
            // Else each would ask a Kafka that is not there.
            Field cluster = WorkerConfig.class.getDeclaredField("kafkaClusterId");
            cluster.setAccessible(true);
            cluster.set(config, "c");
            if (ofTasks) {
                tasks(config);
            } else {
                worker(config);
            }
            return "ok";
        } catch (Throwable refusal) {
            return ("no " + refusal + " " + refusal.getCause()).replace("\n", " ");
        }
    }

    static void worker(DistributedConfig config) throws Exception {
        new Heartbeat(
            new GroupRebalanceConfig(config, GroupRebalanceConfig.ProtocolType.CONNECT), Time.SYSTEM);
        KafkaOffsetBackingStore offsets =
            new KafkaOffsetBackingStore(() -> null, () -> "c", new JsonConverter());
        offsets.configure(config);
        clients(field(KafkaOffsetBackingStore.class, "offsetLog", offsets));
        KafkaStatusBackingStore statuses =
            new KafkaStatusBackingStore(Time.SYSTEM, new JsonConverter(), () -> null, "c");
        statuses.configure(config);
        clients(field(KafkaStatusBackingStore.class, "kafkaLog", statuses));
        new AdminClientConfig(new HashMap<>(config.originals()));
        topic(config.configStorageTopicSettings());
        topic(config.offsetStorageTopicSettings());
        topic(config.statusStorageTopicSettings());
    }

    static void topic(Map<String, Object> settings) {
        Properties topic = new Properties();
        topic.putAll(settings);
        LogConfig.validate(topic);
    }

    @SuppressWarnings("unchecked")
    static void clients(Object log) throws Exception {
        produce((Map<String, Object>) field(KafkaBasedLog.class, "producerConfigs", log));
        Map<String, Object> of =
            new HashMap<>((Map<String, Object>) field(KafkaBasedLog.class, "consumerConfigs", log));
        of.put("auto.offset.reset", "earliest");
        of.put("enable.auto.commit", "false");
        consume(of);
    }

    static Object field(Class<?> of, String name, Object object) throws Exception {
        Field field = of.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(object);
    }

    static void tasks(DistributedConfig config) {
        Map<String, Object> producer = new HashMap<>(OF_SOURCES);
        producer.putAll(config.originalsWithPrefix("producer."));
        produce(producer);
        Map<String, Object> consumer = new HashMap<>(OF_SINKS);
        consumer.putAll(config.originalsWithPrefix("consumer."));
        consume(consumer);
        Map<String, Object> admin = new HashMap<>(Map.of("bootstrap.servers", "127.0.0.1:1"));
        admin.putAll(config.originalsWithPrefix("admin."));
        new AdminClientConfig(admin);
    }

    static void produce(Map<String, Object> settings) {
        new ProducerConfig(settings);
        if (timed(settings)) {
            new KafkaProducer<>(settings).close(Duration.ZERO);
        }
    }

    static void consume(Map<String, Object> settings) {
        new ConsumerConfig(settings);
        if (timed(settings)) {
            new KafkaConsumer<>(settings).close(Duration.ZERO);
        }
    }

    /** Holds settings against each other that the definitions do not: only a client of them does. */
    static boolean timed(Map<String, Object> settings) {
        return ofPairs && settings.keySet().stream().anyMatch(TIMES::contains);
    }
}
