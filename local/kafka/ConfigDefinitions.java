import java.lang.reflect.Method;
import java.util.TreeMap;
import kafka.server.KafkaConfig;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints each setting of Kafka's own definitions: whose, name, type, and what a value must be. */
public class ConfigDefinitions {
    public static void main(String[] arguments) throws Exception {
        Class<?> crypto = Class.forName("org.apache.kafka.connect.runtime.distributed.Crypto");
        Method worker = DistributedConfig.class.getDeclaredMethod("config", crypto);
        worker.setAccessible(true);
        print("broker", KafkaConfig.configDef());
        print("topic", LogConfig.configDefCopy());
        print("worker", (ConfigDef) worker.invoke(null, crypto.getField("SYSTEM").get(null)));
        print("producer", ProducerConfig.configDef());
        print("consumer", ConsumerConfig.configDef());
        print("admin", AdminClientConfig.configDef());
    }

    static void print(String whose, ConfigDef definition) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(definition.configKeys()).values()) {
            Object limit = key.validator == null ? "" : key.validator;
            System.out.printf("%s\t%s\t%s\t%s%n", whose, key.name, key.type, limit);
        }
    }
}
