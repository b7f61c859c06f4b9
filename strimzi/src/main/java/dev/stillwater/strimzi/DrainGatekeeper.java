package dev.stillwater.strimzi;

import io.fabric8.kubernetes.api.model.coordination.v1.Lease;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.strimzi.api.kafka.model.kafka.Kafka;
import io.strimzi.api.kafka.model.nodepool.KafkaNodePool;
import io.strimzi.plugin.gatekeeper.GatekeeperKafkaEntryContext;
import io.strimzi.plugin.gatekeeper.GatekeeperKafkaValidatingPlugin;
import io.strimzi.plugin.gatekeeper.GatekeeperPluginConfigurationContext;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Holds a reconciliation of a Kafka back while the toolkit has one of its nodes out.
 *
 * <p>What is out is read from the Lease {@code stillwater-<name of the Kafka>} beside the Kafka. The
 * plugin waits before it refuses, because each refusal is a failed reconciliation. It never keeps the
 * operator from its work for good: a Lease that is missing, unreadable, not renewed or held for too
 * long holds nothing back, and the operator then asks Kafka itself, as it does without the plugin.
 */
public final class DrainGatekeeper implements GatekeeperKafkaValidatingPlugin {
    private static final Logger LOGGER = LoggerFactory.getLogger(DrainGatekeeper.class);

    private final Clock clock;
    private final Patience patience;
    // One thread for all clusters: a look is one short request.
    private final ScheduledExecutorService looks =
            Executors.newSingleThreadScheduledExecutor(DrainGatekeeper::daemon);
    private KubernetesClient client;

    /** Made by the operator's service loader. */
    public DrainGatekeeper() {
        this(Clock.systemUTC(), Patience.DEFAULT);
    }

    DrainGatekeeper(Clock clock, Patience patience) {
        this.clock = clock;
        this.patience = patience;
    }

    @Override
    public void configure(GatekeeperPluginConfigurationContext context) {
        client = context.kubernetesClient();
    }

    @Override
    public CompletionStage<Void> kafkaEntry(
            GatekeeperKafkaEntryContext context, Kafka kafka, List<KafkaNodePool> pools) {
        CompletableFuture<Void> entry = new CompletableFuture<>();
        Instant began = clock.instant();
        looks.execute(() -> look(kafka, began, entry, true));
        return entry;
    }

    /** Lets the reconciliation go on, refuses it, or looks again a little later. */
    private void look(
            Kafka kafka, Instant began, CompletableFuture<Void> entry, boolean first) {
        Instant now = clock.instant();
        Optional<Drain> drain = drainOf(kafka, now);
        if (drain.isEmpty()) {
            entry.complete(null);
            return;
        }
        if (first) {
            LOGGER.info("{} The reconciliation of {} waits.", drain.get().sentence(), named(kafka));
        }
        if (Duration.between(began, now).compareTo(patience.refusesAfter()) >= 0) {
            entry.completeExceptionally(new DrainInProgressException(refusal(kafka, drain.get())));
            return;
        }
        long pause = patience.pause().toMillis();
        looks.schedule(() -> look(kafka, began, entry, false), pause, TimeUnit.MILLISECONDS);
    }

    private Optional<Drain> drainOf(Kafka kafka, Instant now) {
        String namespace = kafka.getMetadata().getNamespace();
        String name = Drain.leaseOf(kafka.getMetadata().getName());
        try {
            Lease lease = client.leases().inNamespace(namespace).withName(name).get();
            Optional<Drain> drain = Drain.in(lease, now);
            if (drain.isPresent() && drain.get().lasts(now).compareTo(patience.longest()) >= 0) {
                LOGGER.warn(
                        "{} That is longer than {} minutes: {} is reconciled all the same.",
                        drain.get().sentence(),
                        patience.longest().toMinutes(),
                        named(kafka));
                return Optional.empty();
            }
            return drain;
        } catch (RuntimeException error) {
            LOGGER.warn(
                    "Lease {}/{} cannot be read, so whether a node of {} is drained is not known; it is"
                            + " reconciled as without this plugin.",
                    namespace,
                    name,
                    named(kafka),
                    error);
            return Optional.empty();
        }
    }

    private String refusal(Kafka kafka, Drain drain) {
        return String.format(
                "%s A reconciliation of %s could take a second one out, so it waited %d minutes and is"
                        + " tried again; `stillwater incidents` says what the drain waits for.",
                drain.sentence(), named(kafka), patience.refusesAfter().toMinutes());
    }

    private static String named(Kafka kafka) {
        return String.format(
                "Kafka %s/%s", kafka.getMetadata().getNamespace(), kafka.getMetadata().getName());
    }

    private static Thread daemon(Runnable task) {
        Thread thread = new Thread(task, "stillwater-gatekeeper");
        thread.setDaemon(true);
        return thread;
    }
}
