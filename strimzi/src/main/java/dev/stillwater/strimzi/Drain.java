package dev.stillwater.strimzi;

import io.fabric8.kubernetes.api.model.coordination.v1.Lease;
import io.fabric8.kubernetes.api.model.coordination.v1.LeaseSpec;
import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.util.Map;
import java.util.Optional;

/**
 * A node that the toolkit has out, as its Lease says.
 *
 * @param holder the incident that has it out
 * @param since when it was drained
 * @param sentence who is out and for what, for people
 */
record Drain(String holder, Instant since, String sentence) {
    static final String REASON = "stillwater.dev/reason";

    /** Returns the name of the Lease that tells of a Kafka's drains. */
    static String leaseOf(String kafka) {
        return "stillwater-" + kafka;
    }

    /** Returns the drain that a Lease tells of; none where nobody holds it or it was not renewed. */
    static Optional<Drain> in(Lease lease, Instant now) {
        LeaseSpec spec = lease == null ? null : lease.getSpec();
        if (spec == null || spec.getHolderIdentity() == null || spec.getHolderIdentity().isEmpty()) {
            return Optional.empty();
        }
        ZonedDateTime renewed = spec.getRenewTime();
        Integer lasts = spec.getLeaseDurationSeconds();
        if (renewed == null || lasts == null || !now.isBefore(renewed.toInstant().plusSeconds(lasts))) {
            return Optional.empty();
        }
        ZonedDateTime acquired = spec.getAcquireTime();
        Map<String, String> said = lease.getMetadata().getAnnotations();
        String holder = spec.getHolderIdentity();
        String sentence = said == null ? null : said.get(REASON);
        return Optional.of(
                new Drain(
                        holder,
                        (acquired == null ? renewed : acquired).toInstant(),
                        sentence == null ? "Incident " + holder + " has a Kafka node out." : sentence));
    }

    Duration lasts(Instant now) {
        return Duration.between(since, now);
    }
}
