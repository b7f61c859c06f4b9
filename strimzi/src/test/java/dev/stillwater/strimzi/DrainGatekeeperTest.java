package dev.stillwater.strimzi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.strimzi.api.kafka.model.kafka.Kafka;
import io.strimzi.api.kafka.model.kafka.KafkaBuilder;
import io.strimzi.plugin.gatekeeper.GatekeeperKafkaEntryContext;
import io.strimzi.plugin.gatekeeper.GatekeeperPlugin;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.List;
import java.util.ServiceLoader;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The plugin asks over HTTP, as it asks an API server, and is called as the operator calls it. */
class DrainGatekeeperTest {
    private static final Instant NOW = Instant.parse("2026-03-03T10:00:00Z");
    private static final Kafka ORDERS =
            new KafkaBuilder().withNewMetadata().withName("orders").withNamespace("kafka").endMetadata().build();
    private static final GatekeeperKafkaEntryContext CONTEXT = new GatekeeperKafkaEntryContext() {};

    private final Hands hands = new Hands(NOW);
    private HttpServer server;
    private KubernetesClient client;
    private volatile int status = 404;
    private volatile String lease = "{}";
    private volatile String asked = "";

    @BeforeEach
    void serve() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            asked = exchange.getRequestMethod() + " " + exchange.getRequestURI();
            byte[] body = lease.getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().add("Content-Type", "application/json");
            exchange.sendResponseHeaders(status, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
        Config config = new ConfigBuilder(Config.empty())
                .withMasterUrl("http://127.0.0.1:" + server.getAddress().getPort())
                .withRequestRetryBackoffLimit(0)
                .build();
        client = new KubernetesClientBuilder().withConfig(config).build();
    }

    @AfterEach
    void stop() {
        client.close();
        server.stop(0);
    }

    @Test
    void theOperatorsServiceLoaderFindsIt() {
        assertTrue(ServiceLoader.load(GatekeeperPlugin.class).stream()
                .anyMatch(each -> each.type().equals(DrainGatekeeper.class)));
    }

    @Test
    void aKafkaWithoutALeaseIsReconciled() {
        entered(Duration.ofMinutes(15)).join();
        assertEquals("GET /apis/coordination.k8s.io/v1/namespaces/kafka/leases/stillwater-orders", asked);
    }

    @Test
    void aLeaseThatNobodyHoldsHoldsNothingBack() {
        answer("{\"leaseDurationSeconds\": 300}");
        entered(Duration.ofMinutes(15)).join();
    }

    @Test
    void aDrainIsWaitedFor() {
        held(NOW.minusSeconds(60), NOW);
        CompletableFuture<Void> entry = entered(Duration.ofMinutes(15));
        assertThrows(Exception.class, () -> entry.get(100, TimeUnit.MILLISECONDS));
        answer("{}");
        entry.orTimeout(10, TimeUnit.SECONDS).join();
    }

    @Test
    void aDrainThatGoesOnIsRefusedWithWhoIsOut() {
        held(NOW.minusSeconds(60), NOW);
        CompletableFuture<Void> entry = entered(Duration.ZERO);
        CompletionException refused =
                assertThrows(CompletionException.class, () -> entry.orTimeout(10, TimeUnit.SECONDS).join());
        assertInstanceOf(DrainInProgressException.class, refused.getCause());
        assertEquals(
                "Kafka node 3 is drained for incident i-0a.1. A reconciliation of Kafka kafka/orders could take"
                        + " a second one out, so it waited 0 minutes and is tried again; `stillwater incidents`"
                        + " says what the drain waits for.",
                refused.getCause().getMessage());
    }

    @Test
    void aLeaseThatWasNotRenewedHoldsNothingBack() {
        held(NOW.minusSeconds(600), NOW.minusSeconds(300));
        entered(Duration.ofMinutes(15)).join();
    }

    @Test
    void aDrainOfHalfAnHourHoldsNothingBack() {
        held(NOW.minusSeconds(1800), NOW);
        entered(Duration.ofMinutes(15)).join();
    }

    @Test
    void aRefusalToReadHoldsNothingBack() {
        status = 403;
        entered(Duration.ofMinutes(15)).join();
    }

    @Test
    void anApiServerThatIsAwayHoldsNothingBack() {
        server.stop(0);
        entered(Duration.ofMinutes(15)).join();
    }

    @Test
    void whatFollowsEachOtherIsNeverRefusedMoreThanTwiceInHalfAnHour() {
        Duration wait = Patience.DEFAULT.refusesAfter();
        assertFalse(wait.multipliedBy(2).compareTo(Duration.ofMinutes(30)) < 0);
    }

    private CompletableFuture<Void> entered(Duration wait) {
        DrainGatekeeper plugin =
                new DrainGatekeeper(hands, new Patience(wait, Duration.ofMinutes(30), Duration.ofMillis(20)));
        plugin.configure(() -> client);
        return plugin.kafkaEntry(CONTEXT, ORDERS, List.of()).toCompletableFuture();
    }

    private void held(Instant since, Instant renewed) {
        answer(String.format(
                "{\"holderIdentity\": \"i-0a.1\", \"leaseDurationSeconds\": 300,"
                        + " \"acquireTime\": \"%s\", \"renewTime\": \"%s\"}",
                micro(since), micro(renewed)));
    }

    private static String micro(Instant moment) {
        return moment.toString().replace("Z", ".000000Z");
    }

    private void answer(String spec) {
        status = 200;
        lease = String.format(
                "{\"apiVersion\": \"coordination.k8s.io/v1\", \"kind\": \"Lease\", \"metadata\": {\"name\":"
                        + " \"stillwater-orders\", \"annotations\": {\"stillwater.dev/reason\": \"Kafka node 3 is"
                        + " drained for incident i-0a.1.\"}}, \"spec\": %s}",
                spec);
    }

    /** A clock whose hands stand. */
    private static final class Hands extends Clock {
        private final Instant now;

        Hands(Instant now) {
            this.now = now;
        }

        @Override
        public Instant instant() {
            return now;
        }

        @Override
        public ZoneId getZone() {
            return ZoneOffset.UTC;
        }

        @Override
        public Clock withZone(ZoneId zone) {
            return this;
        }
    }
}
