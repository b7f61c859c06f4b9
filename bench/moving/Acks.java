import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Kafka's own producer, at its defaults: a line for each acknowledgement, until its input ends. */
public class Acks {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        int partitions = Integer.parseInt(arguments[2]);
        long everyNanos = 1_000_000_000L / Long.parseLong(arguments[3]);
        byte[] payload = new byte[Integer.parseInt(arguments[4])];
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        String bytes = "org.apache.kafka.common.serialization.ByteArraySerializer";
        settings.put("key.serializer", bytes);
        settings.put("value.serializer", bytes);
        settings.put("linger.ms", "0");
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            long due = System.nanoTime();
            for (int sent = 0; System.in.available() == 0; sent++) {
                due += everyNanos;
                long wait = due - System.nanoTime();
                if (wait > 0) {
                    Thread.sleep(wait / 1_000_000, (int) (wait % 1_000_000));
                }
                long at = System.currentTimeMillis();
                long clock = System.nanoTime();
                ProducerRecord<byte[], byte[]> record =
                        new ProducerRecord<>(topic, sent % partitions, null, payload);
                producer.send(record, (metadata, error) -> System.out.println(
                        at + " " + (System.nanoTime() - clock) / 1e6
                                + (error == null ? "" : " " + error.getClass().getName())));
            }
        }
    }
}
